-- stdlib/distributions/special.lua: functions of positive numbers that distributions need, composed
-- of operations, which give them their gradients.
--
-- Stirling's series at x + 8 and the recurrence back: exact to a few units of the last place.

local special = {}

local SHIFT <const> = 8
-- Coefficients of 1 / z^(2k - 1) in the series of lgamma: B(2k) / (2k (2k - 1)).
local SERIES <const> = { 1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
                         -3617 / 122400 }

--- The logarithm of the gamma function, x > 0.
function special.lgamma(x)
  local z, below = x + SHIFT, x
  for k = 1, SHIFT - 1 do below = below * (x + k) end
  local inverse, sum = z:square():reciprocal(), nil
  for k = #SERIES, 1, -1 do sum = sum and sum * inverse + SERIES[k] or inverse * 0 + SERIES[k] end
  return (z - 0.5) * z:log() - z + 0.5 * math.log(2 * math.pi) + sum / z - below:log()
end

--- Its derivative.
function special.digamma(x)
  local z, below = x + SHIFT, x:reciprocal()
  for k = 1, SHIFT - 1 do below = below + (x + k):reciprocal() end
  local inverse, sum = z:square():reciprocal(), nil
  for k = #SERIES, 1, -1 do
    local term = SERIES[k] * (2 * k - 1)
    sum = sum and sum * inverse + term or inverse * 0 + term
  end
  return z:log() - 0.5 / z - sum * inverse - below
end

--- a * log(b), 0 where a is 0.
function special.xlogy(a, b)
  local zero = a:eq(0)
  return a * (b * 1):masked_fill(zero:logical_and(b:eq(0)), 1):log()
end

return special
