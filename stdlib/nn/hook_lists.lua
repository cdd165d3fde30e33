-- stdlib/nn/hook_lists.lua: the hooks of each module (module_hooks.lua), as lists by kind.
return setmetatable({}, { __mode = "k" })
