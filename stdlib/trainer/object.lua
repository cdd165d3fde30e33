--- stdlib/trainer/object.lua: adds the methods of a class to a table of private fields (a mixin):
--- the objects in a run's state.
--
-- Its methods are copied beside its fields: some fifty are called in every step, and looking them
-- up through a metatable takes 0.9 % of the instructions of a small one.

--- Adds the methods of a class to `fields`, and returns these.
return function(class, fields)
  for name, method in next, class do fields[name] = method end
  return fields
end
