// What the console says about the settings, in English.
import type { Sentences } from '../sentences.ts'
import type { zhSettings } from '../zh-CN/zh-CN-settings.ts'

export const enSettings: Sentences<typeof zhSettings> = {
  'console.settings': 'Settings',
  'settings.lead': 'The settings in effect; those that nobody has changed are dimmed and marked as defaults.',
  'settings.name': 'Name',
  'settings.value': 'Value',
  'settings.default': 'default',
  'settings.was': 'Default: {value}',
  'topic.address': 'Addresses',
  'topic.provider': 'Identity provider',
  'topic.session': 'Sessions and the store',
  'topic.upstream': 'The application behind',
  'topic.identity': 'What the application is told',
  'topic.pages': 'Pages',
  'topic.observing': 'Log, metrics and audit',
  'topic.running': 'Running',
}
