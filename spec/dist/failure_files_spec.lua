-- spec/dist/failure_files_spec.lua: where failures of ranks are written, among strangers' files.
-- tags: slow
local child = require "spec.cli.child"
local support = require "spec.dist.support"

local function lines_of(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read "a"
end

describe("the files of a failure", function()
  it("lie in a folder of this user alone, whose name nobody can guess", function()
    local names = {}
    for i = 1, 2 do
      local status, output, folder = support.run [[
        dist.launch(2, function(rank)
          if rank == 1 then os.execute "kill -9 $PPID" end
          dist.barrier()
        end)
      ]]
      assert.equal(137, status, output)
      local mode, name = lines_of(("cd '%s' && stat -c '%%a %%n' ltrain_failure_*"):format(folder))
        :match "^(%d+) (ltrain_failure_%x+)\n$"
      assert.equal("700", mode)
      assert.equal(16, #name:match "%x+$")
      assert.matches("was ended by SIGKILL",
        lines_of(("cat '%s/%s/failure.rank0.txt'"):format(folder, name)))
      names[i] = name
      child.remove(folder)
    end
    assert.not_equal(names[1], names[2])
  end)

  it("are not there for an error of a script on a forked rank: the launch raises it", function()
    local status, output, folder = support.run [[
      dist.launch(2, function(rank) if rank == 1 then error "boom" end dist.barrier() end)
    ]]
    assert.equal(1, status, output)
    assert.matches("rank 1: .*boom", output)
    assert.equal("", lines_of(("cd '%s' && ls -d ltrain_failure_* 2>/dev/null"):format(folder)))
    child.remove(folder)
  end)

  it("replace a link in the folder of the logs and do not follow it", function()
    local status, output, folder = support.run [[
      os.execute "mkdir logs && echo precious >precious && ln -s ../precious logs/failure.rank0.txt"
      dist.launch(2, function(rank)
        require "ltrain.c".dist.set_folder "logs"
        if rank == 1 then error "boom" end
        dist.barrier()
      end)
    ]]
    assert.equal(1, status, output)
    assert.equal("precious\n", lines_of(("cat '%s/precious'"):format(folder)))
    assert.matches("boom", lines_of(("cat '%s/logs/failure.rank0.txt'"):format(folder)))
    child.remove(folder)
  end)

  for _, launcher in ipairs { "mpirun", "mpiexec.openmpi", "prterun" } do
    it("say that the launcher has exited: " .. launcher, function()
      local folder = child.folder()
      child.write(folder .. "/s.lua", [[
        require "ltrain".dist.barrier()
        io.open("ready", "w"):close()
        while true do end
      ]])
      local text = lines_of(([[
        cd '%s' && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        command -v prterun || ln -s $(command -v mpirun) prterun; export PATH=$PATH:$PWD
        %s -q --oversubscribe -n 2 '%s' s.lua >out 2>&1 & launcher=$!
        said=ltrain_failure_*/failure.rank1.txt
        for i in $(seq 600); do test -e ready && break; sleep 0.05; done
        kill -9 $launcher
        for i in $(seq 600); do test -s $said && break; sleep 0.05; done
        cat $said
      ]]):format(folder, launcher, os.getenv "LTRAIN" or "ltrain"))
      assert.matches("its launcher has exited: " .. launcher:gsub("%.", "%%."), text)
      child.remove(folder)
    end)
  end
end)
