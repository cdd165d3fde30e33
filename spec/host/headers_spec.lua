-- spec/host/headers_spec.lua: the public headers in the languages and dialects of hosts.
local build = os.getenv("LT_BUILD")

local host <const> = [[
#include "host/ltrain.h"
#include <ltrain/backend.h>

static void say(void *, int, const char *) {}

int main() {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.log = say;
  config.allow = LTRAIN_READ_FILES | LTRAIN_ENVIRONMENT;
  ltrain *l = ltrain_open(&config);
  double loss = 0;
  const int64_t shape[] = {2, 3};
  float data[6] = {0, 0, 0, 0, 0, 0};
  lt_tensor *t = ltrain_wrap(l, data, LT_F32, 2, shape, LT_NOTHING, LT_NOTHING);
  bool ok = ltrain_call(l, "f", "T>d", t, &loss) && ltrain_step(l, LT_NOTHING) == LTRAIN_FINISHED;
  ltrain_release(l, t);
  ltrain_close(l);
  return ok ? 0 : 1;
}
]]

-- What the compiler says of the host in a dialect, no warning allowed; "" when nothing.
local function complaints(compiler, suffix, standard, text)
  local path = os.tmpname()
  local file <close> = assert(io.open(path .. suffix, "w"))
  file:write(text)
  file:flush()
  local pipe = assert(io.popen(("%s -std=%s -pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only "
    .. "-Iruntime/include -Ilua -I%s/generated/include %s%s 2>&1"):format(
    compiler, standard, build, path, suffix)))
  local said = pipe:read "a"
  pipe:close()
  os.remove(path)
  os.remove(path .. suffix)
  return said
end

describe("the public headers", function()
  if not build then
    pending("needs LT_BUILD, the build folder")
    return
  end

  for _, standard in ipairs { "c++11", "c++14", "c++17", "c++20" } do
    it("compile without a warning in " .. standard, function()
      local text = host:gsub("LT_NOTHING", "nullptr")
      assert.equal("", complaints("g++ -Wzero-as-null-pointer-constant -Wextra-semi", ".cpp",
        standard, text))
    end)
  end

  for _, standard in ipairs { "c99", "c11", "c17", "gnu11" } do
    it("compile without a warning in " .. standard, function()
      local text = host:gsub("LT_NOTHING", "NULL"):gsub("main%(%)", "main(void)")
        :gsub("void %*, int, const char %*", "void *ud, int level, const char *text")
        :gsub("text%) {}", "text) { (void)ud, (void)level, (void)text; }")
      assert.equal("", complaints("gcc -Wstrict-prototypes", ".c", standard, text))
    end)
  end

  for _, header in ipairs { "host/ltrain.h", "ltrain/tensor.h", "ltrain/version.h",
    "ltrain/dlpack.h", "ltrain/args.h", "ltrain/comm.h", "ltrain/backend.h" } do
    it("compile alone, as C99, C11 and C++11: " .. header, function()
      local text = ('#include "%s"\n#include "%s"\nextern int unit;\n'):format(header, header)
      assert.equal("", complaints("gcc -Wstrict-prototypes", ".c", "c99", text))
      assert.equal("", complaints("gcc -Wstrict-prototypes", ".c", "c11", text))
      assert.equal("", complaints("g++ -Wzero-as-null-pointer-constant", ".cpp", "c++11", text))
    end)
  end
end)
