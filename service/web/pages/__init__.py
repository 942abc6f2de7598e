"""The pages, a module for each; `service.web.app` finds them."""
