--- stdlib/apps/plan/tensor_bytes.lua: bytes of the elements of tensors, also of meta tensors.
local dtypes = require "ltrain.core.dtypes"

local tensor_bytes = {}

--- Of one tensor.
function tensor_bytes.of(tensor) return tensor:numel() * dtypes[tensor.dtype].size end

--- Of a list; false in it stands for none.
function tensor_bytes.of_all(tensors)
  local bytes = 0
  for _, tensor in ipairs(tensors) do
    if tensor then bytes = bytes + tensor_bytes.of(tensor) end
  end
  return bytes
end

return tensor_bytes
