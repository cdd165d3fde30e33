--- stdlib/apps/check/checks/library_name.lua: lt.nn.Linaer: names that the library does not have.
local errors = require "ltrain.core.errors"
local foreign_names = require "ltrain.core.foreign_names"
local resolve = require "ltrain.apps.check.source.resolve"
local visit = require "ltrain.apps.check.source.visit"

-- Names that a table of the library has, or would have when they are asked for.
local function names_of(object)
  local names = {}
  for key in next, object do
    if type(key) == "string" then names[#names + 1] = key end
  end
  local meta = getmetatable(object)
  if type(meta) == "table" and rawget(meta, "__pairs") then
    for key, value in pairs(object) do
      local name = type(key) == "string" and key or value
      if type(name) == "string" then names[#names + 1] = name end
    end
  end
  return names
end

-- What a variable or field of this name usually holds.
local USUAL <const> = { self = "self", trainer = "Trainer", model = "Module", net = "Module",
  module = "Module", pl_module = "Module", logger = "Logger", datamodule = "DataModule",
  dm = "DataModule" }

local function usual(node)
  local name = node.kind == "name" and node.name or node.kind == "index" and node.key.value
  return USUAL[name]
end

-- Names that the script gives to fields and methods.
local function own_names(tree)
  local names = {}
  visit(tree, function(node)
    if node.kind == "item" and node.key then names[node.key.value or 0] = true end
    for _, target in ipairs(node.kind == "assign" and node.targets or {}) do
      if target.kind == "index" then names[target.key.value or 0] = true end
    end
  end)
  return names
end

-- trainer.fit_loop, net:to_torchscript(): members that objects of Lightning have.
local function check_members(context)
  local own = own_names(context.source.tree)
  visit(context.source.tree, function(node)
    local name = node.kind == "index" and node.key.value or node.method
    local of = name and node.object and usual(node.object)
    if not of or own[name] or context.report:has(node.line) then return end
    local instead = of == "self" and foreign_names.member(name)
      or of ~= "self" and foreign_names.rows(of)[name]
    if instead then
      context.report:error("library_name", node.line,
        ("there is no '%s' of a %s"):format(name, of == "self" and "module" or of), instead)
    end
  end)
end

return {
  source = function(context)
    local given = {}
    check_members(context)
    visit(context.source.tree, function(node)
      if node.kind == "assign" then
        for _, target in ipairs(node.targets) do given[target] = true end
      end
      if node.kind ~= "index" or given[node] or node.key.kind ~= "string" then return end
      local object, name = resolve(node.object)
      if type(object) ~= "table" or rawget(object, "__name") then return end
      local key = node.key.value
      local ok, value = pcall(function() return object[key] end)
      if ok and value ~= nil or context.report:has(node.line) then return end
      local said = not ok and tostring(value) or ""
      local near = errors.nearest(key, names_of(object)) or said:match "did you mean '([%w_]+)'"
      local instead = said:match "there is no [^;]*; (.+)$"
      if instead and instead:find "^did you mean" then instead = nil end
      instead = instead or near and ("write %s.%s"):format(name, near)
      context.report:error("library_name", node.line, ("%s has no '%s'"):format(name, key),
        instead or "see its page in the reference")
    end)
  end,
}
