-- spec/docs/gpu_recipes_spec.lua: the recipes for 8 GPUs of docs/guide/choosing_parallelism.md
-- train as they are written: tiny models, on 8 ranks of the CPU and on fake devices.
-- tags: half, slow
local child = require "spec.cli.child"

local PAGE <const> = "docs/guide/choosing_parallelism.md"
local RANKS <const> = { cpu = 8, fake = 4 } -- there are 4 fake devices

-- The commands of the recipes: a list of { model = the script before it, line = }.
local function commands()
  local file <close> = assert(io.open(PAGE))
  local list, model = {}, nil
  for language, text in file:read "a":gmatch "\n```(%l+)\n(.-)```" do
    if language == "lua" then model = text end
    for line in text:gmatch "ltrain (run [^\n]*)" do
      list[#list + 1] = language == "sh" and { model = model, line = line } or nil
    end
  end
  return list
end

describe("the recipes for 8 GPUs", function()
  for _, command in ipairs(commands()) do
    for device, ranks in pairs(RANKS) do
      it(("train on %d of %s: ltrain %s"):format(ranks, device, command.line), function()
        local folder = child.folder()
        child.write(folder .. "/model.lua", command.model)
        local line, count = command.line:gsub("%-%-accelerator gpu %-%-devices 8",
          ("--accelerator %s --devices %d --limit_train_batches 2 --threads 1"):format(device,
            ranks))
        assert.equal(1, count)
        local arguments = {}
        for word in line:gsub("%-%- %S+$", "-- tiny"):gmatch "%S+" do
          arguments[#arguments + 1] = word
        end
        local status, out, err = child.run(arguments, { dir = folder })
        child.remove(folder)
        assert.equal(0, status, out .. err)
        assert.matches(("%d ranks on 1 host"):format(ranks), err)
      end)
    end
  end

  it("are there for both models", function() assert.equal(3, #commands()) end)
end)
