--- stdlib/apps/plan/BlockProfile.lua: what each block of a pipeline takes in a step: bytes of its
--- parameters, of what it keeps for backward and of what it passes on, and seconds.
local BlockTimes = require "ltrain.strategies.pipeline.BlockTimes"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local tensor_bytes = require "ltrain.apps.plan.tensor_bytes"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local BlockProfile = class.extend(BlockTimes, "BlockProfile")

-- Bytes of the tensors of a module, each once.
local function module_bytes(module)
  local bytes, seen = 0, {}
  for _, item in ipairs((walk.tensors(module))) do
    if not seen[item.value] then bytes = bytes + tensor_bytes.of(item.value) end
    seen[item.value] = true
  end
  return bytes
end

--- BlockProfile(blocks, device, clock): `device`: of which bytes are counted; `clock`: see
--- BlockTimes. Fields, lists by block: `parameters`; `kept`, with what comes before the first one
--- in number 0 and what follows the last one in its number + 1; `passed`.
function BlockProfile:init(blocks, device, clock)
  self.device, self.parameters, self.kept, self.passed = device, {}, {}, {}
  for i, block in ipairs(blocks) do self.parameters[i] = module_bytes(block) end
  for i = 0, #blocks + 1 do self.kept[i] = 0 end
  BlockTimes.init(self, #blocks, clock)
end

local function live(self) return c.runtime.memory(self.device).live_bytes end

-- What was allocated since the last mark is kept by number i: the most of all microbatches counts.
local function note(self, i)
  local now = live(self)
  self.kept[i], self.mark = math.max(self.kept[i], now - self.mark), now
end

function BlockProfile:begin()
  BlockTimes.begin(self)
  self.mark = live(self)
end

function BlockProfile:watch(i, forward, ...)
  if i == 1 then note(self, 0) end
  local results, passed = table.pack(BlockTimes.watch(self, i, forward, ...)), 0
  note(self, i)
  for k = 1, results.n do
    tree.each(results[k], function(leaf)
      if c.is_tensor(leaf) then passed = passed + tensor_bytes.of(leaf) end
    end)
  end
  self.passed[i] = math.max(self.passed[i] or 0, passed)
  return table.unpack(results, 1, results.n)
end

function BlockProfile:begin_backward()
  note(self, self.count + 1)
  BlockTimes.begin_backward(self)
end

return BlockProfile
