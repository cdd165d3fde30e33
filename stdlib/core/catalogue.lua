-- stdlib/core/catalogue.lua: a table whose names are files: one file a public name.
--
-- `lt.nn.Linear` is what `ltrain.nn.Linear` returns, loaded when first asked for. Adding a layer is
-- adding a file; `ltrain.nn.ConvNd` has Conv1d, Conv2d and Conv3d (core/dims_family.lua). Files of
-- functions, whose names begin with a small letter, are public where the folder lists them; the
-- others are its own. One file may have several public functions.

local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local dims_family = require "ltrain.core.dims_family"
local errors = require "ltrain.core.errors"
local library_modules = require "ltrain.core.library_modules"
local strict_arity = require "ltrain.core.strict_arity"
local strict_table = require "ltrain.core.strict_table"

-- The public names below a prefix: the classes of the library, and the keys of `paths`.
local function names_of(prefix, paths)
  local names, pattern = {}, "^" .. prefix:gsub("%p", "%%%0") .. "%.(%u[%w_]*)$"
  for name in next, paths do names[#names + 1] = name end
  for _, full in ipairs(library_modules.list()) do
    local name = full:match(pattern)
    local members = name and dims_family.names(name) or { not paths[name] and name or nil }
    for _, member in ipairs(members) do names[#names + 1] = member end
  end
  table.sort(names)
  return names
end

-- Where the public names are that `others` has: the path for `require`.
local function places_of(prefix, others)
  local paths, within = {}, {}
  for name, place in next, others or {} do
    if math.type(name) then
      paths[place] = prefix .. "." .. place
    elseif type(place) == "table" then
      for _, own in ipairs(place) do paths[own], within[own] = prefix .. "." .. name, own end
    else
      paths[name] = place
    end
  end
  return paths, within
end

-- The path of a public name, and its key in the table of its file; nil: there is no such name.
local function place_of(prefix, paths, within, name)
  if paths[name] then return paths[name], within[name] end
  local path <const> = prefix .. "." .. name
  if not name:find "^%u[%w_]*$" or dims_family.names(name) then return nil end
  if library_modules.has(path) then return path end
  local file <const>, n <const> = dims_family.file_of(path)
  if file and library_modules.has(file) then return file, n end
end

--- A catalogue of the classes below `prefix` ("ltrain.nn"); `others` lists the public files of
--- functions, { file = { names } } public functions of one file, and maps further names to the
--- path that `require` gets for them. An unknown name is an error, `what` says of what. `options`:
--- of functions, the names of options that may be given by place, { fft = "n dim norm" }.
return function(prefix, what, others, options)
  local paths, within = places_of(prefix, others)
  return setmetatable({}, {
    __index = function(self, name)
      if type(name) ~= "string" then return nil end
      local path <const>, key <const> = place_of(prefix, paths, within, name)
      if not path then
        errors.blame("%s: there is no '%s'%s", what, name,
          errors.in_place_of(name, what, names_of(prefix, paths)))
      end
      local value = require(path)
      if key then value = value[key] end
      local who <const>, places <const> = what .. "." .. name, options and options[name]
      local own <const> = places and c.runtime.parameters(value) - 1
      value = strict_table(strict_arity.fn(value, who), who)
      if places then value = call_form.method(value, who, own, places) end
      rawset(self, name, value)
      return value
    end,
    __pairs = function() return next, names_of(prefix, paths) end,
  })
end
