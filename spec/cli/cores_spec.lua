-- spec/cli/cores_spec.lua: as many threads as the quota of a control group leaves cores.
local function lines_of(command)
  local pipe <close> = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read("a")
  return text, pipe:close()
end

describe("a quota of cores", function()
  local ltrain <const> = os.getenv("LTRAIN")

  -- What ltrain sees where /sys/fs/cgroup holds files with these texts: a mount of its own.
  local function threads_under(files)
    local folder = lines_of("mktemp -d"):match "%S+"
    for name, text in pairs(files) do
      os.execute(("mkdir -p $(dirname %s/%s)"):format(folder, name))
      local file <close> = assert(io.open(folder .. "/" .. name, "w"))
      file:write(text, "\n")
    end
    local mounted = ("unshare -m sh -c 'mount --bind %s /sys/fs/cgroup && "):format(folder)
    local _, possible = lines_of(mounted .. "true'")
    local out = possible and lines_of(mounted .. ("env -u OMP_NUM_THREADS %s -e \"%s\"'"):format(
      ltrain, "local runtime = require [[ltrain.c]].runtime print(runtime.get_threads(), "
        .. "runtime.process.cores())"))
    os.execute("rm -r " .. folder)
    if not possible then pending("no mounts of one's own here (unshare -m)") end
    return out
  end

  it("leaves one thread for one core, in either version of control groups", function()
    assert.equal("1\t1\n", threads_under{ ["cpu.max"] = "100000 100000" })
    assert.equal("1\t1\n", threads_under{ ["cpu/cpu.cfs_quota_us"] = "50000",
      ["cpu/cpu.cfs_period_us"] = "100000" })
  end)

  it("changes nothing where there is none, or more than there are cores", function()
    local all = threads_under{}
    assert.equal(all, threads_under{ ["cpu.max"] = "max 100000" })
    assert.equal(all, threads_under{ ["cpu.max"] = "90000000 1000" })
  end)
end)
