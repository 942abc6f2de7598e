"""What callgrade's processes load: for the one process that the tests' own are forked from."""

import gc
import warnings

import httpx
import openai.resources.chat

import service.cli.app
import service.cli.keys
import service.cli.serve
import service.cli.worker
from service.io import model, shared_cache, webhooks
from service.io.quiet import environ

with environ(model._AT_IMPORT), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import litellm

gc.freeze()  # what is collected is copied
