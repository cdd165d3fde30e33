-- spec/trainer/draw.lua: random choices of a drawn case, apart from the numbers of lt.

--- The functions random(n), from 1 to n; one_of(list); maybe(percent) of the case `number`.
return function(number)
  local state = (number * 2654435761 + 12345) & 0xffffffff
  local function random(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 33) % n + 1
  end
  local function one_of(list) return list[random(#list)] end
  local function maybe(percent) return random(100) <= percent end
  return random, one_of, maybe
end
