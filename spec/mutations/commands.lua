-- spec/mutations/commands.lua: runs command lines with one mistake each, and prints how they end.
--
--   ./dev mutations commands [HOW MANY]
--
-- For each option of each command: misspelt, without a value, with values of another kind ("x",
-- "10s", "1.5", "-1"). Each must end with an exit status that is not 0 and a message, in no frame
-- of ltrain's own. Those that do not are listed; the last line has the score.
local commands <const> = require "ltrain.cli.commands"
local trainer <const> = require "ltrain.trainer.setup.options"

local ltrain <const> = assert(os.getenv "LTRAIN")
local MODEL <const> = [[
local lt = require "ltrain"
lt.seed(0)
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(4, 2) end
function Net:training_step(x) local y = self.fc(x) return y:mean() end
function Net:validation_step(x) self:log("val", self.fc(x):mean()) end
function Net:test_step(x) self:log("test", self.fc(x):mean()) end
function Net:predict_step(x) local y = self.fc(x) return y end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = {lt.ones(2, 4)}
return {model = Net(), data = {train = data, val = data, test = data, predict = data},
  trainer = {max_epochs = 1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false}}]]

-- What follows the word; "?" without a script: a file, a folder of runs.
local OBJECTS <const> = { info = "model.lua", inspect = "model.lua", hash = "last.ckpt",
  plot = "runs", compare = "runs", dashboard = "runs", sweep = "model.lua --max_epochs 1,2",
  diagnose = "runs" }

-- Values that an option of a kind does not take.
local WRONG <const> = {
  integer = { "x", "10s", "1.5", "3.0e", "0x" }, number = { "x", "10s", "1,5", "nan" },
  boolean = { "maybe", "2" }, choice = { "x", "nonee" },
}
-- Texts of the Trainer that are checked.
local CHECKED <const> = { accelerator = true, strategy = true, logger = true, profiler = true,
  precision = true, nonfinite = true, matmul_precision = true, gradient_clip_algorithm = true,
  devices = true, max_time = true, val_check_interval = true, deterministic = true }

local function misspelt(name)
  local at = #name // 2
  return name:sub(1, at) .. name:sub(at + 2)
end

local function wrong_values(name, row)
  if row.choices or CHECKED[name] then return WRONG.choice end
  local kind = row.type or "string"
  if kind == "integer" and (row.min or -1) >= 0 then
    return table.pack("-1", table.unpack(WRONG.integer))
  end
  return WRONG[kind] or {}
end

local list = {}

local function add(what, ...)
  list[#list + 1] = { what = what, line = table.concat({ ... }, " ") }
end

local function add_option(word, object, name, row)
  add("misspelt", word, object, "--" .. misspelt(name), "1")
  if row.type ~= "boolean" and not tostring(row.type):find "boolean" then
    add("no value", word, object, "--" .. name)
  end
  for _, value in ipairs(wrong_values(name, row)) do
    add("wrong value", word, object, ("--%s %s"):format(name, value))
    add("wrong value", word, object, ("--%s=%s"):format(name, value))
  end
end

for _, word in ipairs(commands.list) do
  local object = word.script and "model.lua" or OBJECTS[word.name] or ""
  for _, row in ipairs(word.options) do add_option(word.name, object, row.name, row) end
  add("misspelt", misspelt(word.name), object)
  if word.script then
    add("no script", word.name)
    for _, path in ipairs { "nowhere.lua", "folder", "bytes" } do
      add("wrong file", word.name, path)
    end
    add("two scripts", word.name, "model.lua model.lua")
  elseif word.name ~= "doctor" then
    for _, path in ipairs { "nowhere", "bytes", "empty.lua" } do
      add("wrong file", word.name, path)
    end
  end
end
local names = {}
for name in pairs(trainer) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do add_option("run", "model.lua", name, trainer[name]) end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function main(most)
  local folder <const> = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p %s/folder %s/runs"):format(folder, folder))
  write(folder .. "/model.lua", MODEL)
  write(folder .. "/empty.lua", "")
  write(folder .. "/bytes", ("\x00\xff\x7fELF{"):rep(20))
  local bad, step = 0, math.max(1, #list // most)
  local count = 0
  for k = 1, #list, step do
    local one = list[k]
    local pipe <close> = assert(io.popen(("cd %s && timeout 20 '%s' %s 2>&1 </dev/null; "
      .. "echo \"exit $?\""):format(folder, ltrain, one.line)))
    local text = pipe:read "a"
    local status = tonumber(text:match "exit (%d+)%s*$")
    count = count + 1
    local why = status == 0 and "silent" or status > 2 and "status " .. status
      or (text:find "stack traceback" or text:find "ltrain%.[%w_.]+:%d+:") and "a frame of ltrain"
      or not text:find "ltrain: " and not text:find "bytes: 1 error" and "no message"
    if why then
      bad = bad + 1
      print(("\n%s: %s: ltrain %s\n  %s"):format(why, one.what, one.line,
        (text:sub(1, 600):gsub("\n", "\n  "))))
    elseif os.getenv "SHOW" then
      print(one.line, "->", text:match "ltrain: ([^\n]*)")
    end
  end
  os.execute("rm -rf " .. folder)
  print(("\n%d command lines: %d bad"):format(count, bad))
  return bad == 0
end

os.exit(main(tonumber(arg[1] or 10000)))
