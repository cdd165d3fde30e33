--- stdlib/nn/forward_methods.lua: the wrappers that a strategy puts around registered methods
--- (register_forward_method.lua): by module, fn(method, module, ...), which calls the method.

return setmetatable({}, { __mode = "k" })
