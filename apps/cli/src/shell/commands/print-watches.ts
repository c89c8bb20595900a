import type { ShellCommand } from '../command.ts'

/** Whether changes are printed. */
export const printWatches: ShellCommand = {
  usage: 'printwatches on|off',
  offline: true,
  run(shell, { words: [to] }) {
    if (to === undefined) shell.out(`printwatches is ${shell.areWatchesPrinted ? 'on' : 'off'}`)
    else shell.areWatchesPrinted = to === 'on'
  },
}
