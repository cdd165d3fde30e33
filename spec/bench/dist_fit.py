# spec/bench/dist_fit.py: PyTorch's and Lightning's side of ./dev bench dist.
#
#   python dist_fit.py torch|lightning mlp|cnn|gpt RANKS WINDOWS STEPS
#
# torch: a plain loop, on several ranks over DistributedDataParallel with gloo; lightning: Trainer,
# there with strategy "ddp_fork". One thread a rank. Prints samples a second of all ranks together, a
# line for each window of STEPS whole steps.
import os, socket, sys, time, warnings
import torch
import torch.nn.functional as F
from torch_models import BATCH_SIZE, batch, make_net, make_optimizer

system, model = sys.argv[1], sys.argv[2]
ranks, windows, steps = (int(n) for n in sys.argv[3:6])
WARM_UP = 50
READY = 16  # batches that come again and again
torch.set_num_threads(1)


class Windows:
    def __init__(self):
        self.rates, self.began = [], None

    def end_of_step(self, index):
        done = index + 1 - WARM_UP
        if done < 0 or done % steps:
            return
        now = time.perf_counter()
        if self.began is not None:
            self.rates.append(ranks * BATCH_SIZE[model] * steps / (now - self.began))
        self.began = now

    def show(self):
        for rate in self.rates:
            print("window %.6g" % rate, flush=True)


class Batches:  # Lightning takes a list for several loaders
    def __init__(self):
        self.ready = [batch(model) for _ in range(READY)]

    def __len__(self):
        return WARM_UP + windows * steps

    def __iter__(self):
        return (self.ready[i % READY] for i in range(len(self)))


def loop(net, rank):
    optimizer, seen = make_optimizer(model, net), Windows()
    for index, (x, y) in enumerate(Batches()):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.end_of_step(index)
    if rank == 0:
        seen.show()


def one_rank(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(1 + rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    loop(torch.nn.parallel.DistributedDataParallel(make_net(model)), rank)
    torch.distributed.destroy_process_group()


def run_torch():
    if ranks == 1:
        torch.manual_seed(1)
        return loop(make_net(model), 0)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.start_processes(one_rank, (port,), nprocs=ranks, start_method="fork")


def run_lightning():
    import logging
    import lightning

    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = make_net(model)

        def training_step(self, batch, index):
            x, y = batch
            return F.cross_entropy(self.net(x), y)

        def configure_optimizers(self):
            return make_optimizer(model, self.net)

        def on_train_start(self):
            torch.set_num_threads(1)
            self.seen = Windows()

        def on_train_batch_end(self, outputs, batch, index):
            self.seen.end_of_step(index)

        def on_train_end(self):
            if self.trainer.is_global_zero:
                self.seen.show()

    lightning.Trainer(
        accelerator="cpu", devices=ranks, strategy="ddp_fork" if ranks > 1 else "auto",
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, use_distributed_sampler=False,
    ).fit(Module(), Batches())


{"torch": run_torch, "lightning": run_lightning}[system]()
