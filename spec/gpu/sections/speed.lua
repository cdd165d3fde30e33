-- spec/gpu/sections/speed.lua: bandwidth, training steps beside PyTorch's, counters of kernels,
-- what of a step is the host's.
local section = require "spec.gpu.section"

local GOAL <const> = 40 -- % of the peak of a product, for GPT-2

section.add("bandwidth", "rows, sums and norms against a copy", function()
  section.work(300, "", "bandwidth")
end)

section.add("bench", "GPT-2 124M bf16, ResNet-50 f16, an MLP, attention, beside PyTorch's",
  function()
    local torch, why = section.python()
    for round = 1, section.tiny and 1 or 2 do
      for _, model in ipairs { "gpt2", "resnet50", "mlp", "attention" } do
        section.work(120, "", "model", model)
        if torch and not section.tiny then
          local status, text, said = section.run(120, ("%s spec/gpu/side.py %s"):format(
            section.quote(torch), model))
          section.note_lines(text)
          if status ~= 0 then
            section.fail("PyTorch, %s: %s", model, section.last_words(said))
          end
        end
      end
      section.note("round", round, "of interleaved runs")
    end
    local reasons = { torch and "" or "without PyTorch: " .. why }
    for _, v in ipairs(section.tiny and {} or section.current.values) do
      if v.name == "gpt2_of_peak" and v.value < GOAL then
        reasons[#reasons + 1] = ("gpt2 at %.1f %% of the peak: the goal is %d"):format(v.value,
          GOAL)
      end
    end
    section.current.reason = table.concat(reasons, "; ")
  end)

-- Of Nsight Compute: part of the peak of memory and of the multiprocessors, instructions.
local COUNTERS <const> = {
  memory = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
  compute = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
  instructions = "smsp__inst_executed.sum",
  time = "gpu__time_duration.sum",
}

section.add("counters", "Nsight Compute over six kernels", function()
  local ncu = section.tool("ncu", { "bin", "nsight-compute" })
  local metrics = {}
  for _, counter in pairs(COUNTERS) do metrics[#metrics + 1] = counter end
  for _, kernel in ipairs { "gelu_bf16", "add_bf16", "sum_columns", "layer_norm", "softmax",
    "attention" } do
    local status, text, said = section.run(120, ("LUA_PATH_5_4='./?.lua;;' %s --csv --metrics %s "
      .. "%s spec/gpu/work.lua once %s %s"):format(section.quote(ncu), table.concat(metrics, ","),
      section.quote(section.LTRAIN), section.tiny and "tiny" or "full", kernel))
    if (text .. said):find "ERR_NVGPUCTRPERM" then
      section.skip "the driver lets only root read counters (ERR_NVGPUCTRPERM)"
    elseif status ~= 0 then
      section.fail("%s: %s", kernel, section.last_words(text .. said))
    end
    -- The last launch is the kernel's: what is before makes its inputs.
    for name, counter in pairs(COUNTERS) do
      local value
      for unit_value in text:gmatch('"' .. counter:gsub("%p", "%%%0") .. '","[^"]*","([%d.,]+)"') do
        value = tonumber((unit_value:gsub(",", "")))
      end
      if not value then section.fail("%s: ncu printed no %s", kernel, counter) end
      section.note(kernel .. "_" .. name, value, counter)
    end
  end
end)

section.add("sizes", "more than 2^31 elements", function() section.work(300, "", "sizes") end)

section.add("gaps", "what of a step is the host's; that it waits for nothing", function()
  section.work(300, "", "gaps")
end)
