// examples/embed/cpp/main.cpp: ltrain inside a program in C++: states and tensors are owned by
// objects, failures are exceptions. How to build it: CMakeLists.txt, beside it.
//
// Fits y = sin(x) to points of a std::vector, without a copy, prints the loss of each epoch and
// what the network says of four points.
#include <ltrain.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

static const char script[] = R"(
local lt = require "ltrain"
local nn = lt.nn
lt.seed(1)
local Curve = lt.Module:extend "Curve"
function Curve:init()
  self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(),
    nn.Linear(32, 1))
end
function Curve:training_step(batch)
  local loss = lt.mse_loss(self.net(batch[1]), batch[2])
  self:log("loss", loss, {on_epoch = true})
  return loss
end
function Curve:on_train_epoch_end()
  print(("epoch %d: loss %.5f"):format(self.trainer.current_epoch + 1,
    self.trainer.callback_metrics.loss_epoch))
end
function Curve:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
local curve = Curve()
function fit(x, y, epochs)
  local set = lt.data.TensorDataset(x, y)
  local trainer = lt.Trainer{max_epochs = epochs, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false}
  trainer:fit(curve, lt.data.DataLoader(set, {batch_size = 64, shuffle = true}))
end
function predict(x)
  local _ <close> = lt.no_grad()
  return curve.net(x)
end
)";

struct Release {
  ltrain *l;
  void operator()(lt_tensor *t) const { ltrain_release(l, t); }
};
using Tensor = std::unique_ptr<lt_tensor, Release>;

class State {
 public:
  explicit State(const ltrain_config &config) : l(ltrain_open(&config)) { check(l != nullptr); }
  State(const State &) = delete;
  State &operator=(const State &) = delete;
  ~State() { ltrain_close(l); }

  void run(const char *code) { check(ltrain_dostring(l, code, "script")); }

  template <class... Values> void call(const char *name, const char *format, Values... values) {
    check(ltrain_call(l, name, format, values...));
  }

  // A column in the vector's memory, which must live as long, and not grow.
  Tensor column(std::vector<float> &values) {
    const int64_t shape[] = {static_cast<int64_t>(values.size()), 1};
    return own(ltrain_wrap(l, values.data(), LT_F32, 2, shape, nullptr, nullptr));
  }

  Tensor own(lt_tensor *t) {
    check(t != nullptr);
    return Tensor(t, Release{l});
  }

  const float *data(const Tensor &t) {
    const void *bytes = ltrain_data(l, t.get(), 0);
    check(bytes != nullptr);
    return static_cast<const float *>(bytes);
  }

 private:
  void check(bool ok) const {
    if (!ok) throw std::runtime_error(ltrain_errmsg(l));
  }
  ltrain *l;
};

static void print(void *, const char *text, size_t length) { fwrite(text, 1, length, stdout); }

int main() try {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = print;
  State state(config);
  state.run(script);
  std::vector<float> x, y, asked{-2, -1, 1, 2};
  for (int k = 0; k < 1024; k++) {
    x.push_back(static_cast<float>(k) / 128 - 4);
    y.push_back(std::sin(x.back()));
  }
  state.call("fit", "TTi", state.column(x).get(), state.column(y).get(), int64_t{10});
  lt_tensor *out = nullptr;
  state.call("predict", "T>T", state.column(asked).get(), &out);
  Tensor answers = state.own(out);
  for (size_t k = 0; k < asked.size(); k++)
    std::printf("sin(%g) = %.3f, learned %.3f\n", asked[k], std::sin(asked[k]),
                state.data(answers)[k]);
} catch (const std::exception &error) {
  std::fprintf(stderr, "curve: %s\n", error.what());
  return 1;
}
