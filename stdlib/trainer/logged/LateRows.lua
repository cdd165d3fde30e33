--- stdlib/trainer/logged/LateRows.lua: rows of logged steps whose values are on a device: loggers
--- get them some batches later, so that no step waits for what it logs.
--
-- A row is written when AHEAD other batches have been issued: always then, so that what is seen
-- does not depend on time; or before something reads what was logged (an epoch's end, a validation,
-- a checkpoint, trainer.logged_metrics). Steps that the device was asked to check must have been
-- taken before their row is written.
local late_numbers = require "ltrain.core.late_numbers"
local object = require "ltrain.trainer.object"

local LateRows = {}

local AHEAD <const> = 2

--- Those of the run `state`; `write(row, step)` gives a row of a step to the loggers.
function LateRows.new(state, write)
  return object(LateRows, {
    _state = state, _write = write,
    _send = function(row, step) state.trainer:_send_row(row, step) end,
    _batch = 0, -- number of the running batch
    _rows = {}, -- { late = or numbers =, step =, batch =, check = }, the first first
  })
end

local function write_first(self)
  local row = table.remove(self._rows, 1)
  if row.numbers then return self._send(row.numbers, row.step) end
  local numbers = late_numbers.read(row.late) -- the check came before them: one wait for both
  self._state.nonfinite:settle_to(row.check)
  self._write(numbers, row.step)
end

--- A batch begins to log: rows of batches long before it are written.
function LateRows:begin_batch()
  self._batch = self._batch + 1
  while #self._rows > 0 and self._rows[1].batch + AHEAD <= self._batch do write_first(self) end
end

--- Keeps the row of the batch that has just run, values by name; false where all are on the host:
--- then earlier rows have been written.
function LateRows:add(values, step)
  local late = late_numbers.begin(values)
  if late then
    table.insert(self._rows, { late = late, step = step, batch = self._batch,
      check = self._state.nonfinite:last_check() })
  else
    self:settle()
  end
  return late ~= nil
end

--- Keeps a row of numbers that others give the loggers behind those that are waiting; false: there
--- are none.
function LateRows:follow(numbers, step)
  if #self._rows == 0 then return false end
  table.insert(self._rows, { numbers = numbers, step = step, batch = self._batch })
  return true
end

--- Writes all rows; waits for their values.
function LateRows:settle()
  while #self._rows > 0 do write_first(self) end
end

--- Writes those of steps that were taken, after an error.
function LateRows:fail()
  local rows = self._rows
  self._rows = {}
  for _, row in ipairs(rows) do
    if row.check and row.check.refused then return end
    local ok, numbers = row.numbers ~= nil, row.numbers
    if not ok then ok, numbers = pcall(late_numbers.read, row.late) end
    if not ok then return end -- the device has failed
    local write = row.numbers and self._send or self._write
    write(numbers, row.step)
  end
end

return LateRows
