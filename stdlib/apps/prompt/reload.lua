--- stdlib/apps/prompt/reload.lua: `:reload`: runs the files of the script again and replaces its
--- functions and classes; objects and values are kept.
--
-- The files run again: those that `require` has loaded, those of `:load`, the script. Meanwhile
--   - a class that is made again is the class that is there, with its functions anew: the objects
--     of it have the new code and the old weights;
--   - globals are set beside the old ones: functions among them, and new names, take their place,
--     and all other values stay as they are;
--   - a loop of a Trainer (or the end of the file) ends the run of a file;
--   - random numbers are drawn from a state that is given back.
-- If a file fails, all is as it was.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local overrides = require "ltrain.trainer.setup.overrides"
local script_source = require "ltrain.core.script_source"

local reload = {}

local LOOP <const> = setmetatable({}, { __tostring = function() return "a loop begins" end })

-- The file that a function stands in.
local function file_of(fn)
  local place = c.runtime.function_line(fn)
  return place and place:match "^(.*):%d+$"
end

-- Changes of tables that can be undone.
local function new_journal()
  local journal = { n = 0 }
  function journal.set(t, key, value)
    journal.n = journal.n + 1
    journal[journal.n] = { t, key, rawget(t, key) }
    rawset(t, key, value)
  end
  function journal.undo()
    for i = journal.n, 1, -1 do rawset(journal[i][1], journal[i][2], journal[i][3]) end
  end
  return journal
end

-- Whether a class is of the file: one of its own functions stands there.
local function is_of(made, file)
  for _, value in next, made do
    if type(value) == "function" and file_of(value) == file then return true end
  end
  return false
end

-- The class of a file that is made again: as new, without the functions that it had.
local function reopen_class(journal, file, parent, name)
  for made in next, class.made do
    if made.__name == name and rawget(made, "super") == parent and is_of(made, file) then
      local own = {}
      for key, value in next, made do
        if type(value) == "function" and file_of(value) == file then own[#own + 1] = key end
      end
      for _, key in ipairs(own) do journal.set(made, key, nil) end
      return made
    end
  end
end

-- The functions of one table replace those of the other, of tables in it too; new names are added.
local function take_functions(journal, old, new, counts, seen)
  if seen[new] or old == new then return end
  seen[new] = true
  for key, value in next, new do
    local before = rawget(old, key)
    if type(value) == "function" and type(before) == "function" then
      counts.functions = counts.functions + 1
      journal.set(old, key, value)
    elseif before == nil and rawget(old, "__name") == nil and not class.of(old) then
      journal.set(old, key, value)
    elseif type(value) == "table" and type(before) == "table" and getmetatable(value) == nil then
      take_functions(journal, before, value, counts, seen)
    end
  end
end

-- Runs a file's text; what it returns, or nil.
local function run_file(journal, path, text, env)
  local chunk, wrong = load(text, "@" .. path, "t", env)
  if not chunk then error(wrong, 0) end
  local file = script_source.short(path)
  class.reopen = function(parent, name) return reopen_class(journal, file, parent, name) end
  overrides.stop_loops = LOOP
  local _ <close> = overrides.again()
  local results = table.pack(pcall(chunk))
  class.reopen, overrides.stop_loops = nil, nil
  if results[1] then return results[2] end
  if results[2] ~= LOOP then error(results[2], 0) end
end

-- One file: { path =, result = what it returned before }.
local function reload_file(journal, one, globals, counts)
  local text = c.io.read_file(one.path)
  if not text then error(("%s cannot be read"):format(one.path), 0) end
  local beside = setmetatable({}, { __index = globals })
  local result = run_file(journal, one.path, text, beside)
  for name, value in next, beside do
    local before = rawget(globals, name)
    if type(value) == "function" or before == nil then
      counts.functions = counts.functions + (type(value) == "function" and 1 or 0)
      journal.set(globals, name, value)
    elseif type(value) == "table" and type(before) == "table" then
      take_functions(journal, before, value, counts, {})
    end
  end
  if type(result) == "table" and type(one.result) == "table" then
    take_functions(journal, one.result, result, counts, {})
  end
  counts.files = counts.files + 1
end

-- The files of the script that `require` has loaded.
local function required(globals)
  local package, list = globals.package, {}
  if type(package) ~= "table" or type(package.loaded) ~= "table" then return list end
  for name, result in next, package.loaded do
    local path = type(name) == "string" and not name:find "^ltrain" and type(result) ~= "nil"
      and package.searchpath and package.searchpath(name, package.path)
    if path then list[#list + 1] = { path = path, result = result } end
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  return list
end

--- Runs all files again, `files` after those that `require` has loaded; returns how many, and how
--- many functions of tables were replaced. Raises what a file raises, with nothing changed.
function reload.run(globals, files)
  local journal, counts = new_journal(), { files = 0, functions = 0 }
  local drawn = c.runtime.rng_state()
  local ok, wrong = pcall(function()
    for _, one in ipairs(required(globals)) do reload_file(journal, one, globals, counts) end
    for _, one in ipairs(files) do reload_file(journal, one, globals, counts) end
  end)
  c.runtime.rng_restore(drawn)
  if ok then return counts end
  journal.undo()
  error(wrong, 0)
end

return reload
