"""Networks from the literature, one per file."""

from __future__ import annotations

from weft.models.alexnet import AlexNet
from weft.models.bag import BagOfEmbeddings
from weft.models.beam import beam_search
from weft.models.bert import BERT
from weft.models.dcgan import Discriminator, Generator
from weft.models.decoding import generate
from weft.models.gnmt import GNMT
from weft.models.gpt import GPT
from weft.models.mobilenet import MobileNetV1, MobileNetV2
from weft.models.ncf import NeuMF
from weft.models.resnet import ResNet, resnet18, resnet50
from weft.models.unet import UNet
from weft.models.vae import VAE
from weft.models.vgg import VGG, vgg16, vgg19
from weft.models.vit import ViT

__all__ = [
    "BERT",
    "GNMT",
    "GPT",
    "VAE",
    "VGG",
    "AlexNet",
    "BagOfEmbeddings",
    "Discriminator",
    "Generator",
    "MobileNetV1",
    "MobileNetV2",
    "NeuMF",
    "ResNet",
    "UNet",
    "ViT",
    "beam_search",
    "generate",
    "resnet18",
    "resnet50",
    "vgg16",
    "vgg19",
]
