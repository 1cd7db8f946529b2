// What the console says about the settings, in Chinese.

export const zhSettings = {
  'console.settings': '设置',
  'settings.lead': '正在生效的设置；没有改动过的显示为灰色，并标有“默认”。说明为英文，与文档一致。',
  'settings.name': '名称',
  'settings.value': '值',
  'settings.default': '默认',
  'settings.was': '默认值：{value}',
  'topic.address': '访问地址',
  'topic.provider': '身份认证平台',
  'topic.session': '会话与存储',
  'topic.upstream': '后端应用',
  'topic.identity': '告诉应用的信息',
  'topic.pages': '页面',
  'topic.observing': '日志、指标与审计',
  'topic.running': '运行',
} as const
