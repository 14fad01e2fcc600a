import builtins

builtins.during_import()
