-- spec/mutations/kernels.lua: plants faults in the kernels of GPUs and of NCCL, one at a time, and
-- counts those that the specs catch on the emulated GPU.
--
--   ./dev mutations kernels [HOW MANY] [SEED]
--
-- The tree is copied to BUILD/mutations and built there; a fault changes a line of runtime/cuda or
-- runtime/nccl. It is caught when a spec fails that the default suite runs on the emulated GPU,
-- device_conformance first, or does not end. Faults that do not compile do not count. Those that
-- nothing catches are listed, and are for a person to judge: some of them change nothing. The last
-- line has the score.
local count <const> = math.tointeger(tonumber(arg[1] or 20))
local seed <const> = math.tointeger(tonumber(arg[2] or 1))
local ROOT <const> = os.getenv "LT_ROOT" or "."
local BUILD <const> = os.getenv "LT_BUILD" or "build"
local TREE <const> = (BUILD:sub(1, 1) == "/" and BUILD or ROOT .. "/" .. BUILD) .. "/mutations"
local CONFORMANCE <const> = "spec/cuda/conformance_spec.lua"
assert(count and seed, "./dev mutations kernels [HOW MANY] [SEED]")

-- A kind of fault: the line with it, or nil where the line has no place for it.
local function replacing(pattern, replacement)
  return function(line)
    local changed, n = line:gsub(pattern, replacement, 1)
    return n > 0 and changed or nil
  end
end

local KINDS <const> = {
  barrier_dropped = replacing("__sync%w+%([^()]*%);", ";"),
  bound_moved = replacing("(for %(.-) < ", "%1 <= "),
  condition_moved = replacing("(if %(.-[^<]) < ", "%1 <= "),
  check_dropped = replacing("^(%s+)if %(([^;]+)%) return (.-);$",
    "%1if (false && (%2)) return %3;"),
  tail_ignored = replacing("(%s+return .-) %? .- : (.-;)$", function(_, otherwise)
    return "  return " .. otherwise
  end),
  offset_dropped = replacing("(%b[])", function(index)
    local bare, n = index:gsub(" [+-] [%w_]+", "", 1)
    return n > 0 and bare or nil
  end),
  factor_dropped = replacing("(= [%w_.]+) %* [%w_.]+", "%1"),
  set_not_added = replacing("(%w%]?) %+= ", "%1 = "),
  greater_is_less = replacing("(%w) > (%w)", "%1 < %2"),
  stride_is_one = replacing("%* [%w_.>-]*stride[%w_%[%]]*", "* 1"),
  wait_dropped = replacing("^(%s+)[^=]*StreamWaitEvent%b();", "%1;"),
  counts_are_equal = replacing("(%w*counts)%[[%w_]+%]", "%1[0]"),
  error_ignored = replacing("^(%s+)if %(!([%w_]+%b())%) return false;", "%1(void)%2;"),
}

-- A sum of floats, which begins at 1.
function KINDS.sum_begins_at_one(line)
  for _, word in ipairs { "double", "float", "T", "A" } do
    local changed, n = line:gsub("(%f[%w]" .. word .. " [%w_]+ = )0;", "%11;", 1)
    if n > 0 then return changed end
  end
end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function run(format, ...)
  local command = format:format(...)
  local ok, how, code = os.execute("cd " .. quote(TREE) .. " && " .. command)
  return ok == true, how == "exit" and code or -1
end

local function output_of(format, ...)
  local pipe <close> = assert(io.popen("cd " .. quote(TREE) .. " && " .. format:format(...)))
  return pipe:read "a"
end

local function read(path)
  local file <close> = assert(io.open(TREE .. "/" .. path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(TREE .. "/" .. path, "wb"))
  file:write(text)
end

local function prepare()
  assert(os.execute(("mkdir -p %s && cd %s && git ls-files -z | tar --null -cf - -T - | tar -xf - "
    .. "-C %s"):format(quote(TREE), quote(ROOT), quote(TREE))), "cannot copy the tree")
  local targets <const> = "ltrain for_specs device_conformance"
  assert(run("cmake -S . -B build -G Ninja -DLT_CUDA=AUTO >/dev/null"), "cmake fails")
  assert(run("ninja -C build %s >/dev/null", targets), "the tree does not build")
end

-- All places for faults: lists of {path, number, line, kind}, by kind.
local function find_places()
  local by_kind, kinds = {}, {}
  for kind in pairs(KINDS) do kinds[#kinds + 1] = kind end
  table.sort(kinds)
  for path in (output_of "ls runtime/cuda/*.cu runtime/cuda/*.h runtime/nccl/*.c"):gmatch "%S+" do
    local number, comment = 0, false
    for line in read(path):gmatch "([^\n]*)\n" do
      number = number + 1
      if line:find("/*", 1, true) then comment = true end
      for _, kind in ipairs(comment and {} or kinds) do
        local changed = KINDS[kind](line)
        if changed and changed ~= line then
          by_kind[kind] = by_kind[kind] or {}
          table.insert(by_kind[kind],
            { path = path, number = number, line = line, changed = changed, kind = kind })
        end
      end
      if line:find("*/", 1, true) then comment = false end
    end
  end
  return by_kind, kinds
end

local function plant(place)
  local text, number = {}, 0
  for line in read(place.path):gmatch "([^\n]*)\n" do
    number = number + 1
    text[number] = number == place.number and place.changed or line
  end
  write(place.path, table.concat(text, "\n") .. "\n")
end

-- The specs that the default suite runs on the emulated GPU: its own first.
local function specs()
  local list, devices = { CONFORMANCE }, dofile(TREE .. "/spec/devices.lua")
  for path in (output_of "ls spec/cuda/*_spec.lua"):gmatch "%S+" do
    if path ~= CONFORMANCE then list[#list + 1] = path end
  end
  for _, folder in ipairs(devices.folders) do
    for path in output_of("ls %s | sort", folder:find "%.lua$" and folder or folder .. "*_spec.lua")
      :gmatch "%S+" do
      if type(devices.skipped[path]) ~= "string" and type(devices.lacking.cuda[path]) ~= "string"
        and type(devices.lacking.emulated[path]) ~= "string" then
        list[#list + 1] = path
      end
    end
  end
  return list
end

-- What catches the fault that is planted; nil: nothing does.
local function caught_by(list)
  for _, path in ipairs(list) do
    local row = output_of("mkdir -p results && lua5.4 tools/run_specs.lua --one build results %s "
      .. "2>/dev/null", quote(path .. " on cuda"))
    if (tonumber(row:match "^%d+\t(%d+)") or 1) > 0 then return path end
  end
end

prepare()
math.randomseed(seed)
local by_kind, kinds <const> = find_places()
local list <const> = specs()
local caught, missed, broken = 0, {}, 0
while caught + #missed < count do
  local places = by_kind[kinds[math.random(#kinds)]]
  if places and #places > 0 then
    local place = table.remove(places, math.random(#places))
    local original = read(place.path)
    plant(place)
    if run "ninja -C build for_specs >/dev/null 2>&1" then
      local by = caught_by(list)
      print(("%s:%d %s: %s"):format(place.path, place.number, place.kind, by or "NOT CAUGHT"))
      if by then caught = caught + 1 else missed[#missed + 1] = place end
    else
      broken = broken + 1
    end
    write(place.path, original)
  end
end
run "ninja -C build for_specs >/dev/null 2>&1"
for _, place in ipairs(missed) do
  print(("\n%s:%d %s\n- %s\n+ %s"):format(place.path, place.number, place.kind, place.line,
    place.changed))
end
print(("%d of %d faults caught (%.0f %%); %d more did not compile"):format(caught, count,
  100 * caught / count, broken))
