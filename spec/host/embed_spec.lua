-- spec/host/embed_spec.lua: the examples for hosts, as they lie in an installed copy, built against
-- it and run. host.c is in install_spec.lua.
-- tags: slow
local shell = require "spec.build.shell"

local BUILD <const> = os.getenv("LT_BUILD")
local SANITIZE <const> = os.getenv("LT_SANITIZE") or ""
local PRELOAD <const> = os.getenv("LT_PRELOAD") or ""

describe("from an installed copy", function()
  local folder, lib, examples
  local flags <const> = SANITIZE ~= "" and "-fsanitize=" .. SANITIZE or ""

  local function needs_build()
    if not BUILD then pending("LT_BUILD names no build folder") end
  end

  setup(function()
    if not BUILD then return end
    folder = shell.need("mktemp -d"):match "%S+"
    shell.need("cmake --install %s --prefix %s/usr", BUILD, folder)
    lib = shell.need("dirname $(find %s/usr -name libltrain.so)", folder):match "%S+"
    examples = shell.need("find %s/usr -type d -path '*examples/embed'", folder):match "%S+"
  end)
  teardown(function()
    if folder then shell.need("rm -rf %s", folder) end
  end)

  -- Builds NAME.c with the command that its first lines give; returns the program.
  local function build(name)
    local file <close> = assert(io.open(("%s/%s.c"):format(examples, name)))
    local command = file:read("a"):match("%s(cc " .. name .. "%.c [^\n]+)\n")
    shell.need("cd %s && export PKG_CONFIG_PATH=%s/pkgconfig && %s -Wall -Wextra -Werror %s "
      .. "-Wl,-rpath,%s", examples, lib, command, flags, lib)
    return examples .. "/" .. name
  end

  it("game_loop.c trains a policy in the frames of a game", function()
    needs_build()
    if SANITIZE:find "thread" then pending("learns too slowly under ThreadSanitizer") end
    local out = shell.need("timeout 100 %s 200", build "game_loop")
    local median, longest, steps = out:match("^200 frames: median ([%d.]+) ms, 99 %% within "
      .. "[%d.]+ ms, longest ([%d.]+) ms\n([%d.]+) steps of training in a frame\n")
    assert(tonumber(median) >= 5 and tonumber(longest) >= tonumber(median), out)
    assert(tonumber(steps) > 0, out)
    local caught, fallen = out:match " at first, (%d+) of (%d+) at the end\n$"
    assert(tonumber(fallen) >= 16 and tonumber(caught) > tonumber(fallen) / 2, out)
  end)

  it("server.c answers requests while it trains", function()
    needs_build()
    if SANITIZE:find "thread" then pending("learns too slowly under ThreadSanitizer") end
    local program = build "server"
    local script <close> = assert(io.open(folder .. "/talk.sh", "w"))
    script:write(([[cd %s
      timeout 100 %s 0 >server.log 2>&1 & server=$!
      for k in $(seq 100); do grep -q . server.log && break; sleep 0.1; done
      port=$(sed -n 's/.*127.0.0.1:\([0-9]*\)$/\1/p' server.log)
      exec 3<>/dev/tcp/127.0.0.1/$port 4<>/dev/tcp/127.0.0.1/$port
      for k in 1 2 3; do
        echo 0.5 >&3; read -r line <&3; echo "$line"
        echo word >&4; read -r line <&4; echo "$line"
        sleep 0.3
      done
      exec 4>&-
      echo stop >&3
      wait $server; echo "status $?"
      cat server.log
    ]]):format(folder, program))
    script:flush()
    local out = shell.need("bash %s/talk.sh", folder)
    local first, last
    for epoch in out:gmatch "%-?[%d.]+ of epoch (%d+)\na number is wanted\n" do
      first, last = first or tonumber(epoch), tonumber(epoch)
    end
    assert(last and last > first, out)
    assert.matches("\nstatus 0\nlistening on 127.0.0.1:%d+\nstopped after %d+ epochs\n$", out)
  end)

  it("refuses a Lua that is linked into the program, and is loaded beside it", function()
    needs_build()
    if SANITIZE ~= "" then pending("a sanitizer does not bear RTLD_DEEPBIND") end
    local source <close> = assert(io.open(folder .. "/own_lua.c", "w"))
    source:write [[
      #define _GNU_SOURCE
      #include <dlfcn.h>
      #include <ltrain.h>
      #include <stdio.h>
      /* As Lua 5.3 has it. */
      const double *lua_version(void *L) { static const double v = 503; return (void)L, &v; }
      int main(int argc, char **argv) {
        void *lib = dlopen(argv[argc - 1], RTLD_NOW | (argc > 2 ? RTLD_DEEPBIND : 0));
        if (lib == NULL) return puts(dlerror()), 1;
        ltrain *(*open)(const ltrain_config *) = dlsym(lib, "ltrain_open");
        const char *(*errmsg)(const ltrain *) = dlsym(lib, "ltrain_errmsg");
        void (*close)(ltrain *) = dlsym(lib, "ltrain_close");
        ltrain *l = open(NULL);
        puts(l != NULL ? "opened" : errmsg(l));
        close(l);
        return dlclose(lib);
      }
    ]]
    source:flush()
    shell.need("cd %s && PKG_CONFIG_PATH=%s/pkgconfig cc -Wl,-E own_lua.c -o own_lua "
      .. "$(PKG_CONFIG_PATH=%s/pkgconfig pkg-config --cflags ltrain) -ldl", folder, lib, lib)
    local out = shell.need("%s/own_lua %s/libltrain.so", folder, lib)
    assert.equal("open: a Lua that is linked into the program takes the place of Lua 5.4: link "
      .. "the program with a shared library of Lua, or load libltrain.so with dlopen and "
      .. "RTLD_DEEPBIND\n", out)
    assert.equal("opened\n", shell.need("%s/own_lua deep %s/libltrain.so", folder, lib))
  end)

  it("the program in C++ is built with find_package, and learns", function()
    needs_build()
    shell.need("cmake -S %s/cpp -B %s/b -DCMAKE_PREFIX_PATH=%s/usr -DCMAKE_CXX_FLAGS='-Wall "
      .. "-Wextra -pedantic -Werror %s' && cmake --build %s/b", examples, folder, folder, flags,
      folder)
    local out = shell.need("%s/b/curve", folder)
    assert.matches("^epoch 1: loss 0%.%d+\n", out)
    local n = 0
    for right, learned in out:gmatch "sin%([-%d]+%) = ([-%d.]+), learned ([-%d.]+)\n" do
      n = n + 1
      assert.near(tonumber(right), tonumber(learned), 0.1)
    end
    assert.equal(4, n, out)
  end)

  it("python.py trains on arrays of NumPy", function()
    needs_build()
    local python
    for _, name in ipairs { "python3", "/usr/bin/python3" } do
      if not python and shell.run("%s -c 'import numpy'", name) == 0 then python = name end
    end
    if not python then pending("no Python with numpy") end
    local out = shell.need("LD_PRELOAD='%s' ASAN_OPTIONS=detect_leaks=0 timeout 100 %s "
      .. "%s/python.py %s/libltrain.so", PRELOAD, python, examples, lib)
    local loss, right = out:match "^loss ([%d.]+), ([%d.]+) %% of 400 points right\n$"
    assert(loss and tonumber(loss) < 0.1 and tonumber(right) > 97, out)
  end)
end)
