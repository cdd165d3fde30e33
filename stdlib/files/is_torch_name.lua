-- stdlib/files/is_torch_name.lua: whether a path has a name of PyTorch's: .pt, .pth, .pth.tar.

return function(path) return path:gsub("%.tar$", ""):find "%.pth?$" ~= nil end
