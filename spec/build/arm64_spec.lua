-- spec/build/arm64_spec.lua: arm64 compiles without a warning, and operations do there what they do
-- here: their specs run under qemu. Only in ./dev test --exhaustive, as it builds all of ltrain.
-- tags: unsanitized
local shell = require "spec.build.shell"

local ROOT <const> = os.getenv("LT_ROOT")
local BUILD <const> = os.getenv("LT_BUILD")
local FOLDER <const> = (BUILD or "") .. "/arm64"

-- Why it cannot run here, or nil.
local function obstacle()
  if not ROOT or not BUILD then return "LT_ROOT and LT_BUILD name no folders" end
  if os.getenv("LT_EXHAUSTIVE") ~= "1" then return "only with --exhaustive: a whole build" end
  if (os.getenv("LT_SANITIZE") or "") ~= "" then return "sanitizers do not run under qemu" end
  for command, package in pairs { ["aarch64-linux-gnu-gcc"] = "gcc-aarch64-linux-gnu",
    ["qemu-aarch64"] = "qemu-user", ["apt-get"] = "Debian's apt" } do
    if shell.run("command -v %s", command) ~= 0 then
      return ("no %s (%s)"):format(command, package)
    end
  end
  local status, out = shell.run("'%s/spec/build/arm64_sysroot.sh' '%s'", ROOT, FOLDER)
  if status ~= 0 then return "no packages for arm64: " .. out:gsub("%s+", " ") end
end

describe("arm64", function()
  local why = obstacle()

  it("compiles without a warning", function()
    if why then pending(why) end
    shell.need("cmake -G Ninja -S '%s' -B '%s/build' -DCMAKE_TOOLCHAIN_FILE='%s/cmake/arm64.cmake' "
      .. "-DCMAKE_SYSROOT='%s/root' -DLT_WERROR=ON -DLT_SPECS=OFF -DLT_MPI=OFF", ROOT, FOLDER, ROOT,
      FOLDER)
    shell.need("ninja -C '%s/build'", FOLDER)
  end)

  local pipe <close> = assert(io.popen("ls spec/ops/*_spec.lua"))
  for path in pipe:lines() do
    it("passes " .. path, function()
      if why then pending(why) end
      local out = shell.need("env -u LT_PRELOAD qemu-aarch64 -L '%s/root' '%s/build/ltrain' "
        .. "/usr/bin/busted -o TAP %s", FOLDER, FOLDER, path)
      assert.matches("\n1%.%.%d+", out)
      assert.matches("\nok ", out, 1, true)
    end)
  end
end)
