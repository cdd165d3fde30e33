-- tools/lint_circles.lua: no files of C or CUDA use each other's functions in a circle.
--
-- Part of tools/lint_tree.lua, which sees to the order of rooms by their includes; within a room
-- this does. A file uses another when it names a function `lt_*` that the other alone defines: a
-- call, or its address. Functions that a header defines are part of whoever names them. Names that
-- macros put together (`LT_KERNEL(name)`) are not seen: those are rows of tables.

-- Circles that stay, each with its reason: two files (without runtime/ or lua/), of which the first
-- does not count as a user of the second.
local EXCEPT <const> = {
  -- lt_apply converts operands for autocast and copies results by lt_cast and lt_copy_into, which
  -- are operations: it calls itself through them.
  ["ops/calls.c ops/apply.c"] = true,
  -- lt_apply checks each result with a reduction, another operation, for which the check is off.
  ["ops/anomaly.c ops/apply.c"] = true,
  -- Backward of a composed operation computes it again from its parts and runs backward on those.
  ["autograd/vjp_expand.c autograd/backward.c"] = true,
  -- A collective records a node, whose backward is a collective: gradients of gradients need both.
  ["bind/dist/grad.c bind/dist/tensors.c"] = true,
}

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Drops comments, texts and lines of the preprocessor.
local function bare(text)
  text = text:gsub('"[^"\n]*"', '""'):gsub("/%*.-%*/", ""):gsub("//[^\n]*", "")
  return (("\n" .. text):gsub("\\\n", " "):gsub("\n[ \t]*#[^\n]*", "\n"))
end

-- fn(name, body) for each function that `code` defines: its head begins at the margin.
local function each_function(code, fn)
  for from, head in code:gmatch "\n()(%a[^\n;{}=]*%f[%w_]lt_[%w_]+%([^;{}]*%)[^;{}=()]*){" do
    local name = head:match "%f[%w_](lt_[%w_]+)%("
    local open = from + #head
    local line = code:match("^[^\n]*", open)
    fn(name, line:find "}%s*$" and line or code:match("^.-\n}", open) or line)
  end
end

local function names_of(code)
  local list, seen = {}, {}
  for name in code:gmatch "%f[%w_]lt_[%w_]+" do
    if not seen[name] then list[#list + 1], seen[name] = name, true end
  end
  return list
end

-- Who defines what: by name the file, or false of several, and the bodies of headers.
local function definitions(paths, codes)
  local owner, inline = {}, {}
  for _, path in ipairs(paths) do
    each_function(codes[path], function(name, body)
      if path:find "%.h$" then
        inline[name] = (inline[name] or "") .. body
      elseif owner[name] == nil or owner[name] == path then
        owner[name] = path
      else
        owner[name] = false
      end
    end)
  end
  return owner, inline
end

-- The files that `code` uses, by a name that is used.
local function used_by(code, owner, inline, found, seen)
  for _, name in ipairs(names_of(code)) do
    if inline[name] and not seen[name] then
      seen[name] = true
      used_by(inline[name], owner, inline, found, seen)
    elseif owner[name] and not inline[name] then
      found[owner[name]] = found[owner[name]] or name
    end
  end
  return found
end

local function short(path) return (path:gsub("^%w+/", "")) end

-- Fails once for each circle that a walk in the order of `paths` meets.
local function check(fail, paths, uses)
  local done, way = {}, {}
  local function circle(path)
    local parts = {}
    for k = way[path], #way do
      local from, to = way[k], way[k + 1] or path
      parts[#parts + 1] = ("%s (%s)"):format(from, uses[from][to])
    end
    fail("%s -> %s: files use each other in a circle", table.concat(parts, " -> "), path)
  end
  local function visit(path)
    way[#way + 1], way[path] = path, #way + 1
    local below = {}
    for other in pairs(uses[path]) do below[#below + 1] = other end
    table.sort(below)
    for _, other in ipairs(below) do
      if way[other] then
        circle(other)
      elseif not done[other] then
        visit(other)
      end
    end
    way[#way], way[path] = nil, nil
    done[path] = true
  end
  for _, path in ipairs(paths) do
    if not done[path] then visit(path) end
  end
end

--- Checks runtime/ and lua/; fail(format, ...) is called for each fault.
return function(fail)
  local pipe <close> = assert(io.popen(
    "find runtime lua -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort"))
  local paths, codes, uses, met, there = {}, {}, {}, {}, {}
  for path in pipe:lines() do
    paths[#paths + 1], codes[path], there[short(path)] = path, bare(read(path)), true
  end
  local owner, inline = definitions(paths, codes)
  for _, path in ipairs(paths) do
    uses[path] = path:find "h$" and {} or used_by(codes[path], owner, inline, {}, {})
    uses[path][path] = nil
    for other in pairs(uses[path]) do
      local pair = short(path) .. " " .. short(other)
      if EXCEPT[pair] then uses[path][other], met[pair] = nil, true end
    end
  end
  for pair in pairs(EXCEPT) do
    local one, other = pair:match "(%S+) (%S+)"
    if not met[pair] and (there[one] or there[other]) then
      fail("tools/lint_circles.lua: %s: an exception of nothing", pair)
    end
  end
  check(fail, paths, uses)
end
