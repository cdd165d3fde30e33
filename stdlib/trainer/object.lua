--- stdlib/trainer/object.lua: the class of objects in a run's state: private fields, and methods
--- for the other files.
--
-- Its methods are copied beside its fields: some fifty are called in every step, and looking them
-- up through a metatable takes 0.9 % of the instructions of a small one.

--- Adds the methods of a class to `fields`, and returns these.
return function(class, fields)
  for name, method in next, class do fields[name] = method end
  return fields
end
