-- spec/api/compare.lua: how the arguments of a name of ours differ from those that are recorded.
--
-- A function's required arguments go by place, whatever they are called; the options of a function
-- and all arguments of a constructor have the recorded names, and their places as well. `dim` and
-- `dims` are one name. Those that go by name alone there do here.
local ONE <const> = { dim = "dims", dims = "dim" }

local function same(a, b) return a == b or a ~= nil and ONE[a] == b end

--- What is not as recorded: a list of { name =, by_name = true where it has no place here but a
--- name }. `taken`: of spec/api/takes.lua; `first`: how many of its places come before those
--- recorded.
return function(parameters, taken, first, is_constructor)
  local list = {}
  for k, parameter in ipairs(parameters) do
    local name, here = parameter.name, taken.places[k + first]
    local is_named = taken.names[name] or taken.names[ONE[name]] or false
    local stands = same(here, name) or parameter.by_name and is_named
      or not parameter.optional and not is_constructor and not parameter.by_name and here ~= nil
    if not stands then list[#list + 1] = { name = name, by_name = is_named } end
  end
  return list
end
