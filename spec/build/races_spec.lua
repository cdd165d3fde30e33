-- spec/build/races_spec.lua: LT_SANITIZE=thread and OpenMP (tools/tsan_openmp.c).
-- tags: slow, unsanitized
local child = require "spec.cli.child"
local shell = require "spec.build.shell"

-- Threads of loops that follow one another, and work by turns on the same numbers.
local ORDERED <const> = [[
  int n = 1000, *x = calloc(n, sizeof *x), sum = 0;
  for (int k = 0; k < 50; k++) {
    for (int i = 0; i < n; i++) x[i] += i;
  #pragma omp parallel for num_threads(2)
    for (int i = 0; i < n; i++) x[i] += 1;
    for (int i = 0; i < n; i++) x[i] += x[n - 1 - i];
  }
  #pragma omp parallel num_threads(2)
  {
    x[omp_get_thread_num()] = 1;
  #pragma omp barrier
    int other = x[1 - omp_get_thread_num()];
  #pragma omp critical
    sum += other;
  }
]]
local RACE <const> = [[
  #pragma omp parallel for num_threads(2)
  for (int i = 0; i < n; i++) sum += x[i];
]]

-- Whether a program is without races under ThreadSanitizer, and what it printed.
local function run(body, flags)
  local folder <const> = child.folder()
  child.write(folder .. "/main.c", ([[
    #include <omp.h>
    #include <stdlib.h>
    int main(void) {
      %s
      return sum == 1;
    }
  ]]):format(body))
  shell.need("gcc -g -O1 -fopenmp -fsanitize=thread %s/main.c %s -o %s/main", folder, flags, folder)
  local status, out = shell.run("TSAN_OPTIONS=exitcode=66 timeout 60 %s/main", folder)
  return status ~= 66 and status < 124, out
end

describe("a build with LT_SANITIZE=thread", function()
  local function needs_tsan()
    if shell.run("test -e \"$(gcc -print-file-name=libtsan.so)\"") ~= 0 then
      pending("gcc has no libtsan")
    elseif (os.getenv("LT_SANITIZE") or "") ~= "" then
      pending("is about programs of its own")
    end
  end
  local ORDER <const> = "tools/tsan_openmp.c"

  it("knows what regions, barriers and critical sections order", function()
    needs_tsan()
    local clean, out = run(ORDERED, ORDER)
    assert.is_true(clean, out)
    assert.is_false((run(ORDERED, "")))
  end)

  it("finds races of the threads of a region", function()
    needs_tsan()
    local clean, out = run(ORDERED .. RACE, ORDER)
    assert.is_false(clean)
    assert.matches("data race", out, 1, true)
  end)
end)
