import type { ShellCommand } from '../command.ts'

/** Turns the printing of watch events on or off. */
export const printWatches: ShellCommand = {
  usage: 'printwatches on|off',
  offline: true,
  run(shell, { words: [state] }) {
    if (state === undefined) shell.out(`printwatches is ${shell.areWatchesPrinted ? 'on' : 'off'}`)
    else shell.areWatchesPrinted = state === 'on'
  },
}
