-- spec/host/install_spec.lua: an installed copy is found by pkg-config and CMake, and runs.
-- tags: half, slow
local BUILD <const> = os.getenv("LT_BUILD")
local SANITIZE <const> = os.getenv("LT_SANITIZE") or ""
-- gzip takes eight times as long.
local ARCHIVE <const> = os.getenv("LT_EXHAUSTIVE") == "1" and "TGZ" or "TZST"

local function sh(command, ...)
  local pipe <close> = assert(io.popen(command:format(...) .. " 2>&1; echo \"status $?\""))
  local text = pipe:read("a")
  local out, status = text:match("^(.-)status (%d+)\n$")
  return tonumber(status), out
end

local PROJECT <const> = [[
cmake_minimum_required(VERSION 3.20)
project(host LANGUAGES C)
find_package(ltrain 0.1 REQUIRED)
add_executable(host "%s/examples/embed/host.c")
target_link_libraries(host PRIVATE ltrain::ltrain)
add_executable(whole "%s/examples/embed/host.c")
target_link_libraries(whole PRIVATE ltrain::ltrain_static)
add_executable(isolated ../isolated.c)
target_link_libraries(isolated PRIVATE ltrain::ltrain_static)
]]

-- A program whose scripts run in a worker process; a second one is linked statically.
local ISOLATED <const> = [[
#include <ltrain.h>
#include <stdio.h>
int main(void) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.isolate = 1;
  ltrain *l = ltrain_open(&config);
  int64_t n = 0;
  if (l != NULL && ltrain_dostring(l, "n = 6 * 7", "s")) ltrain_get(l, "n", "i", &n);
  printf("%d %s\n", (int)n, ltrain_errmsg(l));
  ltrain_close(l);
  return n != 42;
}
]]

local function write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
end

describe("an installed copy", function()
  local folder, here

  setup(function()
    if not BUILD then return end
    folder = io.popen("mktemp -d"):read("l")
    here = io.popen("pwd"):read("l")
    local status, out = sh("cmake --install %s --prefix %s/usr", BUILD, folder)
    assert(status == 0, out)
  end)
  teardown(function()
    if folder then os.execute("rm -rf " .. folder) end
  end)

  local function needs_build()
    if not BUILD then pending("LT_BUILD names no build folder") end
  end

  -- Sanitized libraries want a sanitized program.
  local function flags()
    return SANITIZE ~= "" and "-fsanitize=" .. SANITIZE or ""
  end

  local function run_host(path)
    local status, out = sh("LD_LIBRARY_PATH=$(dirname $(find %s/usr -name 'libltrain.so')) %s "
      .. "examples/mlp.lua 30", folder, path)
    assert.equal(0, status, out)
    assert.matches("train: epoch 0, batch 20 of 30\n", out, 1, true)
    assert.matches("\naccuracy 0%.%d+\n", out)
    local sum = 0
    for percent in out:gmatch("%d:%s+([%d.]+) %%") do sum = sum + tonumber(percent) end
    assert.near(100, sum, 0.6)
  end

  it("is found by pkg-config and runs the example for hosts", function()
    needs_build()
    local status, out = sh("cc -Wall -Wextra -Werror -std=c11 %s examples/embed/host.c -o %s/host "
      .. "$(PKG_CONFIG_PATH=$(dirname $(find %s/usr -name ltrain.pc)) "
      .. "pkg-config --cflags --libs ltrain)", flags(), folder, folder)
    assert.equal(0, status, out)
    run_host(folder .. "/host")
  end)

  it("says in a host why it cannot run here", function()
    needs_build()
    local status, out = sh("LTRAIN_CPU_LEVEL=avx LD_LIBRARY_PATH=$(dirname $(find %s/usr -name "
      .. "libltrain.so)) %s/host examples/mlp.lua 1", folder, folder)
    assert.equal(1, status)
    assert.matches("LTRAIN_CPU_LEVEL=avx: no such level: this build has ", out, 1, true)
  end)

  it("starts below a private prefix, when linked as the guide says", function()
    needs_build()
    local guide = io.open("docs/guide/embedding.md"):read("a")
    local line = assert(guide:match "\n(cc host%.c [^\n]*rpath[^\n]*)\n")
    local status, out = sh("export PKG_CONFIG_PATH=$(dirname $(find %s/usr -name ltrain.pc)); "
      .. "cp examples/embed/host.c %s/ && cd %s && %s %s", folder, folder, folder, line, flags())
    assert.equal(0, status, out)
    status, out = sh("env -u LD_LIBRARY_PATH %s/host examples/mlp.lua 30", folder)
    assert.equal(0, status, out)
  end)

  it("is found by CMake and runs the example for hosts", function()
    needs_build()
    os.execute("mkdir " .. folder .. "/project")
    write(folder .. "/project/CMakeLists.txt", PROJECT:format(here, here))
    write(folder .. "/isolated.c", ISOLATED)
    local status, out = sh("cmake -S %s/project -B %s/project/b -DCMAKE_PREFIX_PATH=%s/usr "
      .. "-DCMAKE_C_FLAGS='%s' && cmake --build %s/project/b", folder, folder, folder, flags(),
      folder)
    assert.equal(0, status, out)
    run_host(folder .. "/project/b/host")
    run_host(folder .. "/project/b/whole")
    local _, libraries = sh("ldd %s/project/b/whole", folder)
    assert.is_nil(libraries:find("libltrain", 1, true))
    -- Its worker is looked for beside the program, wherever it is started and by whatever name.
    local here_too <const> = "cd %s/project/b && bash -c 'exec -a elsewhere/isolated ./isolated'"
    _, out = sh(here_too, folder)
    assert.equal("0 open: the program ltrain-worker is not beside the library: give its path in "
      .. "worker\n", out)
    status, out = sh("cp $(find %s/usr -name ltrain-worker) %s/project/b && " .. here_too, folder,
      folder, folder)
    assert.same({ 0, "42 \n" }, { status, out })
  end)

  it("has the worker of isolated states where the library finds it", function()
    needs_build()
    write(folder .. "/isolated.c", ISOLATED)
    local status, out = sh("cc -Wall -Wextra -Werror -std=c11 %s %s/isolated.c -o %s/isolated "
      .. "$(PKG_CONFIG_PATH=$(dirname $(find %s/usr -name ltrain.pc)) "
      .. "pkg-config --cflags --libs ltrain)", flags(), folder, folder, folder)
    assert.equal(0, status, out)
    for _, place in ipairs { ("$(dirname $(find %s/usr -name libltrain.so))"):format(folder),
      "$(realpath " .. BUILD .. ")" } do
      status, out = sh("LD_LIBRARY_PATH=%s %s/isolated", place, folder)
      assert.same({ 0, "42 \n" }, { status, out })
    end
  end)

  it("has the binary, the headers that compile alone, and the man page", function()
    needs_build()
    local status, out = sh("LD_LIBRARY_PATH= %s/usr/bin/ltrain --version", folder)
    assert.equal(0, status, out)
    assert.matches("^ltrain %d", out)
    for _, header in ipairs { "ltrain.h", "ltrain/tensor.h", "ltrain/comm.h",
      "ltrain/backend.h" } do
      status, out = sh("echo '#include <%s>' | cc -Wall -Wextra -Werror -std=c11 -I%s/usr/include "
        .. "-x c -c - -o /dev/null", header, folder)
      assert.equal(0, status, out)
    end
    assert.equal(0, (sh("test -e %s/usr/share/man/man1/ltrain.1", folder)))
  end)

  it("has the documentation, laid out as in the source", function()
    needs_build()
    local place = select(2, sh("dirname $(find %s/usr -name LICENSE)", folder)):match "[^\n]+"
    for _, name in ipairs { "README.md", "docs/guide/installing.md", "docs/reference/ops.md",
      "examples/embed/host.c" } do
      assert.equal(0, (sh("cmp %s %s/%s", name, place, name)), name)
    end
  end)

  it("finds the backends that were built", function()
    needs_build()
    local _, built = sh("env -u LTRAIN_BACKENDS %s/ltrain info", BUILD)
    local _, installed = sh("env -u LTRAIN_BACKENDS %s/usr/bin/ltrain info", folder)
    assert.equal(built:match "\nmpi[^\n]+", installed:match "\nmpi[^\n]+")
    local _, elsewhere = sh("LTRAIN_BACKENDS=%s %s/usr/bin/ltrain info", folder, folder)
    assert.equal(("no: no ltrain_mpi.so in %s (LTRAIN_BACKENDS)"):format(folder),
      elsewhere:match "\nmpi +([^\n]+)")
  end)

  it("opens no backend outside of its own folders", function()
    needs_build()
    local there = select(2, sh("find %s/usr -name ltrain_mpi.so", folder)):match "%S+"
    if not there then pending("this build has no MPI") end
    -- Two folders above the binary, where the module for Lua would have its own.
    assert(os.execute(("cd %s && mkdir -p backends ltrain && cp %s backends && mv %s ltrain")
      :format(folder, there, there)))
    local _, out = sh("env -u LTRAIN_BACKENDS %s/usr/bin/ltrain info", folder)
    assert(os.execute(("cd %s && mv ltrain/ltrain_mpi.so %s && rm -r backends ltrain")
      :format(folder, there)))
    assert.matches("\nmpi +no: ltrain_mpi%.so, which was built with this ltrain, is neither in ",
      out)
  end)

  it("gives stock Lua a module", function()
    needs_build()
    local status, out = sh("LD_PRELOAD=%s LUA_CPATH=$(dirname $(find %s/usr -path '*lua/5.4/*.so'))"
      .. "/?.so lua5.4 -e 'print(require \"ltrain\".zeros(2))'", os.getenv("LT_PRELOAD") or "",
      folder)
    assert.equal(0, status, out)
    assert.equal("tensor([0., 0.])\n", out)
  end)

  it("goes without a trace when it is uninstalled", function()
    needs_build()
    local there = folder .. "/uninstalled"
    local status, out = sh("cmake --install %s --prefix %s && mkdir %s/share/doc/other && "
      .. "cmake -D MANIFEST=%s/install_manifest.txt -P cmake/uninstall.cmake", BUILD, there, there,
      BUILD)
    assert.equal(0, status, out)
    assert.matches("uninstall: %d+ files removed", out)
    assert.equal("", select(2, sh("find %s -type f -o -type l -o -name 'ltrain*'", there)))
    assert.equal(0, (sh("test -d %s/share/doc/other", there)))
  end)
end)

describe("a package", function()
  it("is named by its architecture, stripped, and complete", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    local folder = io.popen("mktemp -d"):read("l")
    local status, out = sh("cpack --config %s/CPackConfig.cmake -G %s -B %s && cd %s && "
      .. "cmake -E tar xf *.tar.*", BUILD, ARCHIVE, folder, folder)
    assert.equal(0, status, out)
    local machine = io.popen("uname -m"):read("l")
    local name = select(2, sh("cd %s && ls -d ltrain-*[!zt]", folder)):match "[^\n]+"
    assert.matches("^ltrain%-%d+%.%d+%.%d+%-linux%-" .. machine .. "$", name)
    local _, sections = sh("cd %s/%s && readelf -SW bin/ltrain $(find . -name '*.so')", folder,
      name)
    assert.is_nil(sections:find(".debug_info", 1, true))
    assert.matches(".dynsym", sections, 1, true)
    for _, wanted in ipairs { "ltrain.1", "ops.md", "ltrain.h", "libltrain.a", "ltrain.pc" } do
      assert.equal(0, (sh("find %s/%s -name %s | grep -q .", folder, name, wanted)), wanted)
    end
    os.execute("rm -rf " .. folder)
  end)
end)
