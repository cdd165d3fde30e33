-- spec/trainer/loading_spec.lua: a Trainer and a plain fit load none of what only runs on ranks,
-- checkpoints and other loops need: starting takes as long as what is loaded.
local child = require "spec.cli.child"

local SCRIPT <const> = [[
local lt = require "ltrain"
local modules
for _, value in pairs(debug.getregistry()) do
  if type(value) == "table" and rawget(value, "ltrain.core.class") then modules = value end
end
local function report(when)
  for name in pairs(modules) do print(when .. " " .. tostring(name):gsub("^ltrain%.", "")) end
end
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(3, 1) end
function Net:training_step(x) local loss = self.fc(x):mean() return loss end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local trainer = lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false}
report "Trainer"
trainer:fit(Net(), {lt.ones(2, 3)})
report "fit"
local _ = lt.dist.ddp, lt.dist.launch, lt.dist.batch
report "dist"
]]

local NEVER <const> = { "core.cuts", "core.foreign_names", "core.lightning_names",
  "core.torch_names", "dist.PartReducer", "dist.Reducer", "dist.batch", "dist.check_optimizer",
  "dist.ddp", "dist.hooks.registry", "dist.launch", "files.checkpoint_file",
  "files.sharded_writer", "trainer.logged.media", "trainer.predict_loop",
  "trainer.saving.resume", "trainer.steps.device_parts" }

describe("the library", function()
  it("loads for a Trainer and a plain fit what these need", function()
    local folder <const> = child.folder()
    child.write(folder .. "/s.lua", SCRIPT)
    local status, out, err = child.run({ "s.lua" }, { dir = folder })
    child.remove(folder)
    assert.equal(0, status, err)
    assert.matches("\nfit trainer.steps.module_step\n", out, 1, true)
    for _, when in ipairs { "Trainer", "fit" } do
      for _, name in ipairs(NEVER) do
        local line <const> = when .. " " .. name
        assert.is_nil(out:find("\n" .. line .. "\n", 1, true), line)
      end
    end
    assert.matches("\ndist dist.ddp\n", out, 1, true)
    assert.matches("\ndist dist.launch\n", out, 1, true)
    assert.matches("\ndist dist.batch\n", out, 1, true)
  end)
end)
