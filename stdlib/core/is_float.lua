--- stdlib/core/is_float.lua: whether a dtype is a floating one.
local FLOATS <const> = { f32 = true, f64 = true, f16 = true, bf16 = true }

--- is_float("bf16") -> true
return function(dtype) return FLOATS[dtype] or false end
