module jacobi

go 1.26.8
