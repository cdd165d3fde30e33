-- spec/gpu/bundle_spec.lua: the tarball of `./dev package gpu`: ./dev gpu with nothing else.
-- tags: exhaustive
local shell = require "spec.build.shell"

local BUILD <const> = os.getenv "LT_BUILD" or "build"
local EMULATED <const> = BUILD .. "/spec/cuda/backends"
local LIMIT <const> = 60 << 20 -- bytes

describe("./dev package gpu", function()
  local folder, tarball

  setup(function()
    folder = shell.need("mktemp -d"):match "%S+"
    tarball = shell.need("tools/gpu_bundle.sh %s", BUILD):match "(%S+)%s*$"
    shell.need("cp %s dev '%s'", tarball, folder)
  end)
  teardown(function() shell.need("rm -rf '%s' %s", folder, tarball) end)

  -- In an environment that has nothing but the system's programs.
  local function run(settings, sections)
    return shell.run("cd '%s' && env -i PATH=/usr/bin:/bin %s ./dev gpu --prebuilt %s %s 2>&1",
      folder, settings, tarball:match "[^/]*$", sections)
  end

  it("is small enough to be carried", function()
    assert.is_true(tonumber(shell.need("stat -c %%s %s", tarball)) < LIMIT)
  end)

  it("says in one sentence that there is no GPU", function()
    if shell.run "ls /dev/nvidia0 2>&1" == 0 then pending "there is one" end
    local status, out = run("", "")
    assert.equal(2, status)
    assert.equal("gpu: there is no NVIDIA GPU on this machine (/dev/nvidia0)\n", out)
  end)

  it("has all that the sections need", function()
    if shell.run("ls %s/ltrain_cuda.so 2>&1", EMULATED) ~= 0 then
      pending "no emulated cuda in this build"
    end
    -- Specs run on the emulated GPU where a build has it.
    run("", "nothing")
    shell.need("ln -s %s/spec/cuda '%s'/ltrain-gpu-*/build/spec", BUILD, folder)
    local settings = ("LTRAIN_BACKENDS='%s'"):format(EMULATED)
    local status, out = run(settings, "--tiny info losses saving bandwidth bench counters sizes "
      .. "gaps memory fault dlpack nccl all_reduce kill specs")
    assert.equal(0, status, out)
    assert.matches("\nspecs +passed", out)
    assert.matches("\nnccl +passed", out)
  end)
end)
