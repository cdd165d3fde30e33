--- stdlib/nn/forward_methods.lua: what a strategy does around methods that scripts have registered
--- (register_forward_method.lua): by module, fn(method, module, ...), which calls the method.

return setmetatable({}, { __mode = "k" })
