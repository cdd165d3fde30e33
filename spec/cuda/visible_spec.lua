-- spec/cuda/visible_spec.lua: CUDA_VISIBLE_DEVICES as CUDA reads it, on a machine with four GPUs.
-- What is counted must be what CUDA counts later: it is counted without it, because a process that
-- has used CUDA cannot start ranks.
local counts = require "spec.cuda.counts"

local LTRAIN <const> = os.getenv "LTRAIN" or "ltrain"

-- UUIDs of the fake GPUs: GPU-10aa00-..., GPU-11aa10-..., ...
local CASES <const> = {
  { "0", 1 }, { "3", 1 }, { "1,2", 2 }, { " 2 , 0 ", 2 }, { "0,1,2,3", 4 }, { "3,2,1,0", 4 },
  { "", 0 }, { "-1", 0 }, { "none", 0 }, { "NoDevFiles", 0 }, { ",0", 0 },
  { "0,-1,1", 1 }, { "0,1,4,2", 2 }, { "9", 0 }, { "1,", 1 }, { "1,x", 1 }, { "1gpu,2", 2 },
  { "0,0", 0 }, { "2,1,2", 0 }, { "00,0", 0 },
  { "GPU-10aa00-0000-4000-8000-000000000000", 1 }, { "GPU-10", 1 }, { "GPU-13,GPU-11", 2 },
  { "GPU-1", 0 }, { "GPU-2", 0 }, { "GPU-12,GPU-7", 1 }, { "GPU-12,0", 1 }, { "0,GPU-12", 1 },
  { "GPU-12,GPU-12aa", 0 }, { "gpu-12", 0 },
  { "MIG-5c89852c-d268-50d4-bb30-000000000000", 1 }, { "MIG-1,MIG-2", 1 },
}

describe("CUDA_VISIBLE_DEVICES", function()
  local title <const> = "hides GPUs from ltrain as from CUDA: "
  if not counts then return pending(title .. "numbers, UUIDs (only where there are four)") end
  local function run(value, script)
    local pipe <close> = assert(io.popen(("CUDA_VISIBLE_DEVICES='%s' '%s' -e '%s' 2>&1 </dev/null")
      :format(value, LTRAIN, script)))
    return pipe:read "a"
  end

  for _, case in ipairs(CASES) do
    it(title .. ("'%s'"):format(case[1]), function()
      assert.equal(case[2] .. "\n", run(case[1], "print(lt.cuda.device_count())"))
    end)
  end

  it("is named where it hides all", function()
    assert.matches("CUDA_VISIBLE_DEVICES=%-1 hides all GPUs",
      run("-1", "lt.Trainer{accelerator = [[gpu]]}"))
    assert.matches("no cuda:1 %(cuda has 1%)", run("3", "lt.zeros(1, {device = [[cuda:1]]})"))
  end)
end)

describe("GPUs without nodes in /dev", function()
  local title <const> = "are found "
  if not counts then return pending(title .. "(only where they are fake ones)") end
  local function said(settings, command)
    local pipe <close> = assert(io.popen(("FAKERT_NODES=/none/nvidia %s '%s' %s 2>&1 </dev/null")
      :format(settings, LTRAIN, command)))
    return pipe:read "a"
  end
  local COUNT <const> = "-e 'print(lt.cuda.device_count())'"

  it(title .. "where the driver can make them: they are not there yet when a machine has started",
    function() assert.equal("4\n", said("FAKERT_MAKER=/bin/sh", COUNT)) end)
  it(title .. "in WSL", function()
    assert.equal("1\n", said("FAKERT_WINDOWS=/dev/null", COUNT))
    assert.matches("^1%.0\n$", said("FAKERT_WINDOWS=/dev/null",
      "-e 'print(lt.ones(1, {device = [[cuda]]}):item())'"))
  end)
  it("are not there in a container that was given none", function()
    assert.equal("0\n", said("", COUNT))
    assert.matches("no NVIDIA GPU on this machine, or its driver is not loaded (no /none/nvidia0)",
      said("", "info"), 1, true)
  end)
end)

describe("NVIDIA's driver", function()
  local title <const> = "is told where it is too old, by info and by what asks for a GPU"
  if not counts then return pending(title .. " (only where it is a fake one)") end
  it(title, function()
    local function said(driver, command)
      local pipe <close> = assert(io.popen(("FAKE_DRIVER=%d '%s' %s 2>&1 </dev/null"):format(driver,
        LTRAIN, command)))
      return pipe:read "a"
    end
    local why <const> = "the NVIDIA driver is too old: it is of CUDA 12.8, this ltrain needs 1"
    for _, command in ipairs { "info", "-e 'lt.Trainer{accelerator = [[gpu]]}'",
      "-e 'lt.zeros(1, {device = [[cuda]]})'" } do
      assert.matches(why, said(12080, command), 1, true)
    end
    assert.is_nil(said(99000, "info"):find("too old", 1, true))
    assert.equal("false\t0\tcpu\n", said(12080, "-e 'print(lt.cuda.is_available(), "
      .. "lt.cuda.device_count(), lt.Trainer{}.strategy.root_device)'"))
  end)
end)
