from forksight import main

main()
