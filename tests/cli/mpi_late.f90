! SPDX-License-Identifier: Apache-2.0
! mpi_late.f90 - rank 0 waits for what rank 1 sends late, by Fortran's interface.
program mpi_late
  use mpi
  implicit none
  interface
    function usleep(us) bind(c, name="usleep")
      use iso_c_binding
      integer(c_int), value :: us
      integer(c_int) :: usleep
    end function
  end interface
  integer :: rank, error, i, got, status(MPI_STATUS_SIZE)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  do i = 1, 60
    if (rank == 1) then
      got = usleep(10000)
      call MPI_Send(i, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, error)
    else if (rank == 0) then
      call MPI_Recv(got, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, status, error)
    end if
  end do
  call MPI_Finalize(error)
end program
