! SPDX-License-Identifier: Apache-2.0
! mpi_late ROUNDS SLOW_US FAST_US - rank 1 is late in each round, by Fortran's interface.
module work
  implicit none
  interface
    function usleep(us) bind(c, name="usleep")
      use iso_c_binding
      integer(c_int), value :: us
      integer(c_int) :: usleep
    end function
  end interface
contains
  subroutine slow_work(us)
    integer, intent(in) :: us
    integer :: got
    got = usleep(us)
  end subroutine
  subroutine fast_work(us)
    integer, intent(in) :: us
    integer :: got
    got = usleep(us)
  end subroutine
end module

program mpi_late
  use mpi
  use work
  implicit none
  integer :: rank, error, i, sum_of_all, rounds, slow_us, fast_us
  double precision :: begin
  character(len=32) :: word
  call get_command_argument(1, word)
  read (word, *) rounds
  call get_command_argument(2, word)
  read (word, *) slow_us
  call get_command_argument(3, word)
  read (word, *) fast_us
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  begin = MPI_Wtime()
  do i = 1, rounds
    if (rank == 1) then
      call slow_work(slow_us)
    else
      call fast_work(fast_us)
    end if
    call MPI_Allreduce(i, sum_of_all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  if (rank == 0) print '(A, F0.1, A)', "fortran ", 1e6 * (MPI_Wtime() - begin) / rounds, " us a round"
  call MPI_Finalize(error)
end program
