"""One pass a file, named for what it establishes; `pipeline` lists them in order."""
