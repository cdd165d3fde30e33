--- stdlib/strategies/pipeline/Mail.lua: messages between the ranks of a pipeline.
--
-- Sends do not wait. A rank receives from each other rank in the order in which that one sends,
-- which the schedules of all ranks tell, and keeps what it does not need yet.
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"

local Mail = class.extend(nil, "Mail")

local AHEAD <const> = 4 -- receives from a rank that are under way

--- Mail(group, device): the ranks of one pipeline; nil where it has one rank. What comes is put on
--- the device, by NCCL from one GPU to the other.
function Mail:init(group, device)
  self.group, self.device = group, device
  self.rank = group and group:rank() or 0
  self.sent = {} -- handles of sends that may not be complete, the oldest first
  self.here = {} -- by key: messages that have come, as { value }
  self.order, self.coming = {}, {} -- by rank: keys of messages to come; receives under way
end

local function receive(self, from)
  return collectives.recv(from, { group = self.group, device = self.device, async = true })
end

-- Begins receives from a rank, of those that it will send.
local function begin_receives(self, from)
  local order, coming = self.order[from], self.coming[from]
  while #coming < AHEAD and #coming < #order - order.done do
    coming[#coming + 1] = receive(self, from)
  end
end

--- What comes next: `orders[from]`, a list of the keys of the messages that rank `from` will send.
function Mail:expect(orders)
  for from, order in next, orders do
    order.done = 0
    self.order[from], self.coming[from] = order, {}
    begin_receives(self, from)
  end
end

--- Returns the message of a key, which rank `from` sends.
function Mail:take(from, key)
  while not self.here[key] do
    local order = self.order[from]
    local message = table.remove(self.coming[from], 1):wait()
    order.done = order.done + 1
    self.here[order[order.done]] = { message }
    begin_receives(self, from)
  end
  local message = self.here[key][1]
  self.here[key] = nil
  return message
end

--- Returns the next message of a rank, where none are expected.
function Mail:receive(from) return receive(self, from):wait() end

--- Sends a message, which stays as it is from here on, to a rank; to this one under the key.
function Mail:send(to, key, message)
  if to == self.rank then
    self.here[key] = { message }
    return
  end
  local sent = self.sent
  while #sent > 0 and sent[1]:test() do table.remove(sent, 1):wait() end
  sent[#sent + 1] = collectives.send(message, to, { group = self.group, async = true })
end

--- Waits until at most `count` messages that were sent have not been taken.
function Mail:settle(count)
  while #self.sent > count do table.remove(self.sent, 1):wait() end
end

return Mail
