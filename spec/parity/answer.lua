-- spec/parity/answer.lua: what ltrain makes of given cases, a line of JSON each.
--
--   ltrain spec/parity/answer.lua cases.jsonl > answers.jsonl
--   ltrain spec/parity/answer.lua > ops.json          the operations, with their arguments
local lt = require "ltrain"
local recorded = require "spec.recorded"
local subjects = require "spec.parity.subjects"
local text = require "spec.parity.json_text"
local written = require "spec.parity.written"

if not arg[1] then
  local ops = {}
  for _, op in ipairs(lt.ops()) do
    if not op.hidden then
      local args = {}
      for k, a in ipairs(op.args) do args[k] = {name = a.name, type = a.type} end
      ops[op.name] = {args = args, inputs = op.inputs, list = op.list, kind = op.kind}
    end
  end
  for name, op in pairs(written) do ops[name] = op end
  io.write(text(ops), "\n")
  return
end

for _, case in ipairs(recorded(arg[1])) do
  local ok, answer = pcall(subjects.run, case)
  io.write(text(ok and answer or {error = tostring(answer)}), "\n")
end
