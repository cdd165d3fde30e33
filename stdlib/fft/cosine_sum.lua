-- stdlib/fft/cosine_sum.lua: windows that are sums of cosines.

local c = require "ltrain.c"

--- The window of n samples, a[1] - a[2] cos(2 pi k / N) + a[3] cos(4 pi k / N) - ...: N is n of a
--- `periodic` one, n - 1 of a symmetric one. `o`: dtype and device.
return function(n, a, periodic, o)
  if n == 1 then return c.ones({ 1 }, { dtype = o.dtype, device = o.device }) end
  local turn <const> = c.arange(0, n, { dtype = "f64", device = o.device })
    * (2 * math.pi / (periodic and n or n - 1))
  local y, sign = c.full({ n }, a[1], { dtype = "f64", device = o.device }), -1
  for k = 2, #a do
    y = y + (turn * (k - 1)):cos() * (sign * a[k])
    sign = -sign
  end
  return y:to(o.dtype)
end
