f:
	lock
	addl %eax, %fs:x@tpoff+8(,%rdi,4)
	.section a,"axG",@progbits,g,comdat
"q": ret; ; .type f,@function
#APP
1: jne 1b
#NO_APP