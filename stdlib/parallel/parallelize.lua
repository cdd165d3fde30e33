--- stdlib/parallel/parallelize.lua: lt.parallelize: divides a module among the ranks of a group by
--- a plan (PyTorch's parallelize_module).
--
-- A plan names modules by patterns, as they are named in the module ("layers.*.attn"; * is one part
-- of a name), and gives each a style, or a list of styles. Parameters that styles cut are replaced
-- by this rank's parts of them, under the same names; the modules get a forward that communicates.
-- All of that is taken back by divided_modules.undo.
local ParallelStyle = require "ltrain.parallel.ParallelStyle"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local divided_modules = require "ltrain.parallel.divided_modules"
local errors = require "ltrain.core.errors"
local group_of = require "ltrain.parallel.group_of"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

-- Plans.

local function pattern_of(text)
  return "^" .. text:gsub("%p", "%%%0"):gsub("%%%*", "[^.]+") .. "$"
end

local function styles_of(value, where)
  local list = class.is_a(value, ParallelStyle) and { value } or value
  if type(list) ~= "table" or getmetatable(list) ~= nil or #list == 0 then
    errors.blame("parallelize: %s: needs a style, such as lt.parallel.ColwiseParallel(): got %s",
      where, errors.show(value))
  end
  for _, style in ipairs(list) do
    if not class.is_a(style, ParallelStyle) then
      errors.blame("parallelize: %s: needs styles, such as lt.parallel.ColwiseParallel(): got %s",
        where, errors.show(style))
    end
  end
  return list
end

local function plan_for(module, plan)
  if plan == nil and module.tensor_parallel_plan then plan = module:tensor_parallel_plan() end
  if class.is_a(plan, ParallelStyle) then return { [""] = plan } end
  if type(plan) == "table" and getmetatable(plan) == nil then return plan end
  errors.blame("parallelize: needs a plan: a table of styles by names of modules%s: got %s",
    plan == nil and ("; %s has no tensor_parallel_plan"):format(walk.class_name(module)) or "",
    errors.show(plan))
end

-- The modules that the plan names: a list of { module =, name =, styles = } in the order of the
-- walk.
local function resolve(module, plan)
  local entries, names, found, pattern_for = walk.modules(module), {}, {}, {}
  if next(plan) == nil then
    errors.blame("parallelize: the plan names no module of %s, which ranks are to divide: give it "
      .. "styles by names, such as {fc = lt.parallel.ColwiseParallel()}", walk.class_name(module))
  end
  for i, entry in ipairs(entries) do names[i] = entry.name end
  for text, value in tree.pairs(plan) do
    local pattern, styles, any = pattern_of(text), styles_of(value, ("'%s'"):format(text)), false
    for i, name in ipairs(names) do
      if name:find(pattern) then
        if pattern_for[i] then
          errors.blame("parallelize: '%s' and '%s' of the plan both name %s: give it a list of "
            .. "styles", pattern_for[i], text, name)
        end
        any, pattern_for[i], found[i] = true, text, styles
      end
    end
    if not any then
      errors.blame("parallelize: the plan names '%s', and %s has no such module%s", text,
        walk.class_name(module), errors.did_you_mean(text, names))
    end
  end
  local list = {}
  for i, entry in ipairs(entries) do
    if found[i] then
      list[#list + 1] = { module = entry.module, name = names[i], styles = found[i] }
    end
  end
  return list
end

-- The styles that styles bring for modules in theirs.
local function add_inner(list)
  local all = {}
  for _, one in ipairs(list) do
    all[#all + 1] = one
    for _, style in ipairs(one.styles) do
      for field, inner in tree.pairs(style.inner and style:inner(one.module) or {}) do
        all[#all + 1] = { module = one.module[field], styles = { inner },
          name = one.name == "" and field or one.name .. "." .. field }
      end
    end
  end
  return all
end

-- All ranks of the group must have the same plan: the others would wait for collectives.
local function check_same(list, group)
  local own = {}
  for i, one in ipairs(list) do
    local texts = {}
    for k, style in ipairs(one.styles) do texts[k] = tostring(style) end
    own[i] = ("%s: %s"):format(one.name, table.concat(texts, ", "))
  end
  local all = collectives.all_gather(own, { group = group })
  for r = 2, #all do
    for i = 1, math.max(#all[1], #all[r]) do
      if all[1][i] ~= all[r][i] then
        errors.blame("parallelize: ranks have different plans: rank %d has %s; rank %d has %s",
          group:ranks()[1], all[1][i] or "nothing more", group:ranks()[r],
          all[r][i] or "nothing more")
      end
    end
  end
end

-- Cuts.

local function is_same_cut(a, b) return a.dim == b.dim and a.blocks == b.blocks end

-- What is to be cut: by parameter { cut =, by = name of the module }; and by place, holder and key.
local function requests_of(list, group)
  local of, places = {}, {}
  for _, one in ipairs(list) do
    places[one.module] = places[one.module] or {}
    for _, style in ipairs(one.styles) do
      local site = { name = one.name == "" and walk.class_name(one.module) or one.name,
        group = group }
      for field, cut in tree.pairs(style:cuts(one.module, site)) do
        local parameter = cut and one.module[field]
        local known = parameter and of[parameter]
        if parameter and cuts.of(parameter) then
          errors.blame("parallelize: %s.%s is divided already", site.name, field)
        elseif known and not is_same_cut(known.cut, cut) then
          errors.blame("parallelize: %s and %s share a weight, and divide it along different dims",
            known.by, site.name)
        end
        if parameter then
          of[parameter] = { cut = cut, by = site.name }
          places[one.module][field] = true
        end
      end
    end
  end
  return of, places
end

-- The places of each parameter that is cut; all must be of styles that cut it.
local function places_of(module, of, places)
  local found = {}
  for _, entry in ipairs(walk.modules(module)) do
    for _, item in ipairs(entry.tensors) do
      local request = of[item.value]
      if request then
        local is_named = places[item.holder] and places[item.holder][item.key]
        if not is_named then
          errors.blame("parallelize: %s is the weight of %s too, which the plan divides: name both",
            item.name, request.by)
        end
        found[item.value] = found[item.value] or {}
        table.insert(found[item.value], item)
      end
    end
  end
  return found
end

-- Puts the part of a parameter in all its places.
local function cut_parameter(old, request, items, group)
  local shape = old.shape
  local cut = { name = items[1].name, shape = shape, dim = request.cut.dim,
    blocks = request.cut.blocks, is_summed = request.cut.is_summed, rank = group:rank(),
    ranks = group:world_size(), group = group }
  if not old.is_meta then broadcast_parameters.tensors({ old }, group) end
  local _ <close> = c.no_grad()
  local part = c.parameter(cuts.take(cut, old:detach()), { requires_grad = old.requires_grad })
  cuts.note(part, cut)
  for _, item in ipairs(items) do rawset(item.holder, item.key, part) end
end

-- Cuts what is to be cut; returns a list of the places of each.
local function cut_all(module, of, places, group)
  local found, made = places_of(module, of, places), {}
  for _, entry in ipairs(walk.modules(module)) do
    for _, item in ipairs(entry.tensors) do
      local old = item.value
      if found[old] then
        cut_parameter(old, of[old], found[old], group)
        made[#made + 1], found[old] = found[old], nil
      end
    end
  end
  return made
end

-- Modules.

-- What styles change in modules, with what was there before.
local function new_site(one, group, changes)
  local site = { name = one.name, group = group }
  function site.set(module, field, value)
    changes[#changes + 1] = { module, field, rawget(module, field) }
    rawset(module, field, value)
  end
  function site.wrap(module, fn)
    local before = module.forward
    site.set(module, "forward", function(own, ...) return fn(before, own, ...) end)
  end
  return site
end

--- lt.parallelize(module, mesh, plan): divides the module among the ranks along the mesh's dim
--- "tensor_parallel", or its only one, and returns it. All of these ranks call it, with the same
--- plan; without one it is that of module:tensor_parallel_plan(). The group's first rank's
--- parameters count. Optimizers are made afterwards.
return function(module, mesh, plan)
  if not walk.is_module(module) then
    errors.blame("parallelize: needs a module: got %s", errors.show(module))
  end
  local group = group_of(mesh, "parallelize")
  local list = add_inner(resolve(module, plan_for(module, plan)))
  if group:world_size() == 1 then return module end
  local of, places = requests_of(list, group)
  check_same(list, group)
  local record = divided_modules.record(module)
  for _, items in ipairs(cut_all(module, of, places, group)) do
    table.insert(record.cuts, items)
  end
  for _, one in ipairs(list) do
    local site = new_site(one, group, record.changes)
    for _, style in ipairs(one.styles) do style:apply(one.module, site) end
  end
  return module
end
