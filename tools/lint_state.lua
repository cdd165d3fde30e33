-- tools/lint_state.lua: fields of a run's state (stdlib/trainer/state.lua): none that is not
-- declared there, none set by another file than those that stand beside it. Where `object` stands
-- beside it, others than its own file call its methods, and use no field of it.
--
-- Part of tools/lint_tree.lua. What is read is the text: the records are found where they are
-- called `state`, `x.running`, `x.last_run`, or `x` after `local x = state.loop`.

local DECLARED <const> = "stdlib/trainer/state.lua"
local RECORDS <const> = { loop = true, data = true, ranks = true }
-- Files that go through fields by their names.
local BY_NAME <const> = { ["stdlib/trainer/steps/nonfinite/Rerun.lua"] = true }

local function lines_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return (file:read("a") .. "\n"):gmatch("(.-)\n")
end

-- record -> field -> { file -> true }; "run" is the record that has the others.
local function read_declared()
  local records, record = { run = {}, loop = {}, data = {}, ranks = {} }, nil
  for line in lines_of(DECLARED) do
    record = line:match "^local function new_(%w+)" or line:match "^return function" and "run"
      or record
    local field, owners = line:match "^    ([%w_]+) = .-, %-%- ([%w_/, ]+): %S"
    if field then
      local files = {}
      for owner in owners:gmatch "[%w_/]+" do
        if owner == "object" then files.is_object = true end
        files[("stdlib/trainer/%s.lua"):format(owner)] = true
      end
      records[record][field] = files
    end
  end
  return records
end

-- Whether the access that ends before `rest` is assigned to; `before`: what stands before it.
local function is_target(before, rest)
  if rest:find "^%s*=[^=]" then return true end
  local _, opened = before:gsub("[({]", "")
  local _, closed = before:gsub("[)}]", "")
  return opened == closed and not before:find "=[^=]" and rest:find "^%s*,[%w_.%s,]*=[^=]" ~= nil
end

-- The record that an expression is: "run", "loop", ...; nil: none.
local function record_of(expression, names, objects)
  local first, second = expression:match "^([%w_]+)%.?([%w_]*)$"
  local field = expression:match "^[%w_.]+%.running$" or expression:match "^[%w_.]+%.last_run$"
    or expression:match "%.running or [%w_.]+%.last_run$"
  if field then return "run" end
  if first and second == "" then return names[first] end
  if names[first] ~= "run" then return nil end
  return RECORDS[second] and second or objects[second] and objects[second].is_object and "object"
    or nil
end

-- Names that a line makes: of records, or of something else.
local function note_names(line, names, objects)
  local left, right = line:match "^%s*local ([%w_, ]+) = (.+)$"
  if not left then return end
  local values = {}
  for value in (right .. ","):gmatch "%s*([^,]*)," do values[#values + 1] = value end
  local i = 0
  for name in left:gmatch "[%w_]+" do
    i = i + 1
    names[name] = record_of(values[i] or "", names, objects)
  end
end

-- Calls fn(record, field, before, rest) for each field of a record that a line names.
local function each_access(line, names, objects, fn)
  for at, path, rest in line:gmatch "()%f[%w_]([%a_][%w_.]*)()" do
    local name, tail = path:match "^([%w_]+)%.(.+)$"
    local record = name and names[name]
    local below = path:match "%.running%.(.+)$"
    if below then record, tail = "run", below end
    if record and line:sub(at - 1, at - 1) ~= "." then
      local first, more = tail:match "^([%w_]+)%.?(.*)$"
      if record == "run" and RECORDS[first] and more ~= "" then
        record, first, more = first, more:match "^([%w_]+)%.?(.*)$"
      elseif record == "run" and objects[first] and objects[first].is_object and more ~= "" then
        fn("object", more, "", "")
      end
      fn(record, first, line:sub(1, at - 1), more == "" and line:sub(rest) or "")
    end
  end
end

local function check_file(fail, path, records)
  local own = path:find "^stdlib/trainer/" and "run" or nil -- elsewhere a state is something else
  local names, number = { state = own }, 0
  for line in lines_of(path) do
    number = number + 1
    local code = line:gsub("^%s*%-%-.*", ""):gsub("%s%-%-%s.*", ""):gsub('"[^"]*"', '""')
    code = code:gsub("self%._state%f[^%w_]", "state")
    if code == "end" then names = { state = own } end
    each_access(code, names, records.run, function(record, field, before, rest)
      if record == "object" then
        return fail("%s:%d: %s: a field of an object: call its methods", path, number, field)
      end
      local owners = records[record][field]
      if owners then owners.used = true end
      if not owners then
        fail("%s:%d: %s.%s: not declared in %s", path, number, record, field, DECLARED)
      elseif is_target(before, rest) and not owners[path] then
        fail("%s:%d: %s.%s: set by another file than those beside it in %s", path, number, record,
          field, DECLARED)
      elseif rest:find "^%[" and RECORDS[field] and not BY_NAME[path] then
        fail("%s:%d: %s: fields go by their names", path, number, field)
      end
    end)
    note_names(code, names, records.run)
  end
end

--- Checks all files that have a run's state; fail(format, ...) is called for each fault.
return function(fail)
  local pipe <close> = assert(io.popen(
    "find stdlib/trainer stdlib/callbacks stdlib/cli -name '*.lua' 2>/dev/null | sort"))
  local paths = {}
  for path in pipe:lines() do
    if path ~= DECLARED then paths[#paths + 1] = path end
  end
  local declared = io.open(DECLARED)
  if not declared then return end
  declared:close()
  local records = read_declared()
  for _, path in ipairs(paths) do check_file(fail, path, records) end
  for record, fields in pairs(records) do
    for field, owners in pairs(fields) do
      if not owners.used and not RECORDS[field] then
        fail("%s: %s.%s: nothing uses it", DECLARED, record, field)
      end
    end
  end
end
