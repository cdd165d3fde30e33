-- stdlib/nn/hook_lists.lua: the hooks of each module that has some: lists by kind
-- (module_hooks.lua).
return setmetatable({}, { __mode = "k" })
