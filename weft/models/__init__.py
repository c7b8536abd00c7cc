"""Networks from the literature, one per file."""

from __future__ import annotations

from weft import exports as _exports
from weft.models.alexnet import AlexNet as AlexNet
from weft.models.bag import BagOfEmbeddings as BagOfEmbeddings
from weft.models.beam import beam_search as beam_search
from weft.models.bert import BERT as BERT
from weft.models.dcgan import *
from weft.models.decoding import generate as generate
from weft.models.gnmt import GNMT as GNMT
from weft.models.gpt import GPT as GPT
from weft.models.mobilenet import *
from weft.models.ncf import NeuMF as NeuMF
from weft.models.resnet import *
from weft.models.unet import UNet as UNet
from weft.models.vae import VAE as VAE
from weft.models.vgg import *
from weft.models.vit import ViT as ViT

_exports.gather(globals())
