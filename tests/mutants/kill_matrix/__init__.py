"""What finds which known bug: the layers, and the matrix of their kills."""
